"""Values as C expressions."""
