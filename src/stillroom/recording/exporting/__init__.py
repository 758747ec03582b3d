"""Give a thread out in a form that other programs, or people, read; redacted, and at constant memory."""
