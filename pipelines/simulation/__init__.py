"""The parts of the simulator: its settings, its randomness, the catalogue, the pages, and what people do on them."""
