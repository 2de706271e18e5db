"""The operators of ONNX, a family a file: each a function over Tensors and its attributes."""
