"""Checks: whether an answer is right, beside which reference, and the first pass that made it
wrong."""
