"""Words and sentences, in every language that the cue tables know."""
