"""Operands: broadcasting, promotion, and reading of arguments."""
