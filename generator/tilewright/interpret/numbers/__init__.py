"""Numbers of each dtype: how they are held, rounded and computed with."""
