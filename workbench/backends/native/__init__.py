"""The common base of devices on this machine's processor: memory, linker, launches, threads, object
cache.
"""
