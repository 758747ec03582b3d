"""What later sessions used of the memory: citations, and commands that read it."""
