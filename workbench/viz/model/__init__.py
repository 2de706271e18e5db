"""Models of graphs, rewrites, decisions and provenance, from which rows are made."""
