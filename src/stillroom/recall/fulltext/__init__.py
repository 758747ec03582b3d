"""Ranked full-text search, over an index that can be made again."""
