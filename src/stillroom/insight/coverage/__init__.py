"""Tells how much of what happened in sessions the memory has, and what was lost on the way."""
