"""`workbench bench`: latencies, and times of kernels and of training beside other libraries."""
