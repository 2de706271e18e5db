"""The meaning of nodes: reference interpreters, casts, and the tolerance for rounding errors."""
