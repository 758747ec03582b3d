"""What a session is told at its start."""
