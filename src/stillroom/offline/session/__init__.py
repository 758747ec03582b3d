"""What one session teaches: its events in, a draft out."""
