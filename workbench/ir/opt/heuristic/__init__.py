"""The default opts: tables of steps, for processors and for devices with work-groups."""
