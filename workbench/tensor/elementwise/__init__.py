"""Elementwise methods."""
