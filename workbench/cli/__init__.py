"""The console commands: `workbench lab`, `tour`, `doctor`, `bench`, `tune`, `show`, `profile`."""
