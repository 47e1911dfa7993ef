"""Write the reference pages: one module each, and the tables that they share."""
