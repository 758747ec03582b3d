"""What a secret looks like: the tables and the judgements behind `stillroom.rollouts.redact`."""
