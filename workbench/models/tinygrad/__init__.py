"""tinygrad: graphs of lazy tensors, computed by functions over Tensors."""
