"""Tensor cores: what an instruction multiplies, and which lane holds which element."""
