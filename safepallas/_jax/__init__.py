"""All that knows JAX's private parts, or the schema of its jaxprs."""
