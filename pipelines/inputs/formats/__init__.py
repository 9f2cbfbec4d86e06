"""Source formats, one file each; `pipelines.inputs.format_registry` finds them."""
