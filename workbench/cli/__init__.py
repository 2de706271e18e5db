"""The console commands: `workbench lab`, `tour`, `doctor`, `bench`, `show`, `profile`."""
