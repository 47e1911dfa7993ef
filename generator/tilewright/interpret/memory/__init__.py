"""The memory of a launch: arrays, where the tiles of their views lie in it, and reads and writes of elements."""
