"""From the typed IR of a kernel to a Python function that runs it: one step for each operation."""
