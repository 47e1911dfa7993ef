"""Rules about files and about comments that ignore findings (TW0xx)."""
