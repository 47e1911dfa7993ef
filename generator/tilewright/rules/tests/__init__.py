"""Rules about tests (TW4xx)."""
