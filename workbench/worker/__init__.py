"""A process of our own that compiles, times and checks kernels, whatever they do to it."""
