"""Plain models of graphs, rewrites, decisions and provenance, of which rows are made."""
