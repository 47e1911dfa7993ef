"""Rules about host functions (TW3xx)."""
