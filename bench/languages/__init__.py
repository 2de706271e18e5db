"""Do real compilers take what the workbench writes? A table of languages and kernels."""
