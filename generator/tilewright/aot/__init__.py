"""Compile an operator's kernels for every architecture, without a GPU."""
