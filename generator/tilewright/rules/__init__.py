"""Find what is wrong with an operator from its source alone: rules and the engine that runs them."""
