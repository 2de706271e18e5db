"""Loops of a launch: work-groups, work-items, barriers, warp shuffles."""
