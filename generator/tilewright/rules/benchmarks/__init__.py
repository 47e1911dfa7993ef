"""Rules about benchmarks (TW5xx)."""
