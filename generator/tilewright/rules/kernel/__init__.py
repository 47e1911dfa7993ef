"""Rules about kernels (TW2xx)."""
