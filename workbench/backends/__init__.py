"""Devices: the contract of one, its memory and buffers, and the devices by name. Each device is a
folder."""
