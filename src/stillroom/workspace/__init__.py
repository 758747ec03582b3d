"""The memory folder: artifacts, baseline, bounded diff, validation, swap."""
