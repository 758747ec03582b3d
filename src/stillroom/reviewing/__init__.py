"""What waits for a person: shown, accepted, edited, rejected."""
