"""Gradients of tensors: leaves, backward, functions with a gradient of their own."""
