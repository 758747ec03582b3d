"""Taking things back: what the memory was, undoing, switching off, forgetting."""
