"""Verifiers: the rules of each level, and proofs that a user's kernel stays in bounds."""
