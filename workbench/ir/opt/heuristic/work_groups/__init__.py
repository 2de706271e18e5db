"""The default opts for devices with work-groups."""
