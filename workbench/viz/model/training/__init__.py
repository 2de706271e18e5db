"""Phases of a training step: forward, backward, optimiser."""
