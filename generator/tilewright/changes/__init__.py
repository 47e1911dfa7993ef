"""Apply file changes: all of them or none."""
