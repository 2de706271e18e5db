"""A worker process that compiles, times and checks kernels; a kernel that crashes ends only it."""
