"""Threads of other agents in Stillroom's own home: recorded as they happen, taken in from files, given out again."""
