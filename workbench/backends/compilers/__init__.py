"""Compilers of machine code for machines elsewhere, in processes of their own, and the errors that
they report."""
