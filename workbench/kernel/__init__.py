"""Kernel: a kernel with opts, and the source of its inputs."""
