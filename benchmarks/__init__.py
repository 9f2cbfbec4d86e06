"""Measurements of speed and memory, against other tools and by size: `python -m benchmarks`."""
