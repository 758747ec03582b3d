"""Which program a thread was recorded by: rollouts say it themselves."""

from __future__ import annotations

from stillroom.rollouts.records import Records


def recorded_by(decoder: object) -> str | None:
    """The `originator` of a rollout, once its first line is read. Other formats have none."""
    return decoder.meta.originator if isinstance(decoder, Records) and decoder.meta is not None else None
