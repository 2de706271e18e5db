"""The operators of ATen, a family a file: each a function over Tensors."""
