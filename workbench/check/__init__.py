"""Checks: the verdict on an answer, its reference, and the first pass that made it wrong."""
