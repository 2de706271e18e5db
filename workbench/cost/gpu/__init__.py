"""The performance model of a GPU: occupancy, registers, transactions of warps, time of a group."""
