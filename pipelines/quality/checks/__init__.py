"""The declared checks, one file each; `pipelines.quality.registry` finds them."""
