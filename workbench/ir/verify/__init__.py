"""Verifiers: the rules of each level, and what must be shown of a user's kernel."""
