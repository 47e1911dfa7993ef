"""Records that cross module borders: pure data, standard library only."""
