"""In-place kernels, which write over memory that they read."""
