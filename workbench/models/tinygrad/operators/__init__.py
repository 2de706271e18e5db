"""The ops of tinygrad, a family a file: each a function over Tensors."""
