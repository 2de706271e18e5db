"""The node: the op table, UOp, its parts and constructors, and what is derived of it."""
