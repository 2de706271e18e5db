"""Reductions: sums, products of matrices, windows, scans, norms."""
