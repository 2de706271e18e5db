"""The node: the op table, UOp, its parts and constructors, and facts derived from it."""
