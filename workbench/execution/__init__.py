"""Running a schedule: memory of values, placement, the memory plan, capture and replay."""
