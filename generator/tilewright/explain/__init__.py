"""Explain rules of `tilewright check` and errors of cuTile, its compiler, launches, drivers and tests."""
