"""Position bias: estimators that are declared one by one and read the same small evidence."""
