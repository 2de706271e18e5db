"""numpy's functions that a Tensor answers with an expression, and why it does not answer others."""
