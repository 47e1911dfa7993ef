"""Search the tiles and compiler hints of an operator's table for one architecture."""
