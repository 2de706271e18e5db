"""What devices on this machine's processor share: memory, linker, launches, threads, object
cache."""
