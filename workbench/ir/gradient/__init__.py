"""Gradients: the rule of each op, and the pass that applies them."""
