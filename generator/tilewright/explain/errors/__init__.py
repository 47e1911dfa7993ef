"""The known errors, a module for each topic."""
