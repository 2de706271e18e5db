"""The commands: `workbench lab`, `tour`, `doctor`, `bench`."""
