"""Denoise: rules that are declared one by one, applied together, and accounted for row by row."""
