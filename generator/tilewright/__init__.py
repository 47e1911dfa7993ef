"""Add cuTile GPU operators to a repository, check them and keep them up to date with their template."""

__version__ = "0.9.0"
