"""Models from outside: PyTorch modules, exported programs, ONNX files, tinygrad's Tensors and
functions over arrays, run and explored as if they were written here.

An importer is a table: an operator of the framework, and its function over Tensors. It adds no op
to the IR and no special case to the compiler.
"""
