"""What many sessions teach together: their drafts in, `MEMORY.md` and `memory_summary.md` out."""
