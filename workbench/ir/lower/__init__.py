"""Lowering: from a kernel to the statement tree and the linear program."""
