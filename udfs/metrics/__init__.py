"""One file per metric; each registers itself with `udfs.registry.metric`."""
