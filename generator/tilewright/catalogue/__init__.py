"""What the template can make: families, formulas, reference operators."""
