"""The command line: functions with plain signatures and docstrings become commands with options and a help page."""
