"""ONNX: files of operators, computed by functions over Tensors."""
