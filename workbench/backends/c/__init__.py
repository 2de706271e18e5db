"""C: the writer of kernels as C, and the runtime that compiles and loads them."""
