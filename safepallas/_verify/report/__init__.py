"""From findings to text, pictures and traces."""
