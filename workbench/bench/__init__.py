"""`workbench bench`: how long a person waits, and how fast kernels run beside other libraries."""
