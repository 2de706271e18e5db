"""Kernel, the thin facade: a kernel state from ir/opt plus how to get its inputs."""
