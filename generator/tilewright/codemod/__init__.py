"""Register an operator in the shared files of a TileGym checkout, and take it out again."""
