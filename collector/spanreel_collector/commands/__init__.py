"""The commands that work on what was collected, one file each."""
