"""Labels and the judge: `stillroom.evaluate.labels`, by the names that the tests use."""

from __future__ import annotations

from stillroom.evaluate.labels import FACT_KINDS, Label, Labels, Verdict, counted_bullets, judge, labels_of

__all__ = ["FACT_KINDS", "Label", "Labels", "Verdict", "counted_bullets", "judge", "labels_of"]
