"""Handlers of requests."""
