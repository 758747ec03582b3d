"""Tells whether what memory names is still there, without a model: paths, symbols, commands, commits, asked of git."""
