"""Gradients of tensors: leaves, backward passes, functions with a custom gradient."""
