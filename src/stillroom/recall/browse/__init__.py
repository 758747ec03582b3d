"""The tools over the memory folder: list, read, search, note."""
