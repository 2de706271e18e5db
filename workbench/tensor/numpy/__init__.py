"""numpy's ufuncs and functions over Tensors, and the array API standard."""
