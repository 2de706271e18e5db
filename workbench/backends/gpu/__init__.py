"""GPUs: the dialects that several have, and what their drivers share."""
