"""The six steps of one operator, and whether each is done."""
