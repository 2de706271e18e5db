"""Devices: their contract, their memory and buffers, and the table of devices by name. Each device
has a folder.
"""
