"""Leads from a line of the memory folder back to who wrote it, what it rests on, and who said so."""
