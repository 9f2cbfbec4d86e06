"""Certainty: estimates with their errors from sums that merge, resampling, corrections and power."""
