"""Steps of training: models written once for all libraries, a process for each library."""
