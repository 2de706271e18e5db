"""Running a schedule: memory of values, placement of new versions, memory plan, capture, replay."""
