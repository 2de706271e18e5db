"""GPUs: dialects, drivers, memory and the base class of devices, as far as several share them."""
