"""Table formats, one file each."""
