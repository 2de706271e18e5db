"""Iterations of a loop, run at once where their order makes no difference."""
