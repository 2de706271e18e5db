"""PyTorch: exported programs of ATen operators, computed by functions over Tensors."""
