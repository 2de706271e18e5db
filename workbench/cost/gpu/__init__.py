"""The performance model of a GPU: occupancy, registers, transactions of warps, time from barrier to
barrier."""
