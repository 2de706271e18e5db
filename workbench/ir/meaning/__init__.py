"""The meaning of nodes: reference interpreters, casts, and which difference counts as equal."""
