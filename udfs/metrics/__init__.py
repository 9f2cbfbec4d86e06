"""The metrics, one file each; every file registers its own with `udfs.registry.metric`."""
