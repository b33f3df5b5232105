"""Kernels and scopes: what they allocate, what their bodies receive, what is checked of them."""
