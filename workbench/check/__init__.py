"""Checks: the verdict on an answer, its reference, and the first rewrite that made it wrong."""
