"""Find the host repository and read its profile."""
