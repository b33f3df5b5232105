"""What each operation does to a core: a module for each family of primitives."""
