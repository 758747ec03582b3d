"""One startup pass: who may start one, its steps in their order, and the report of it."""

from stillroom.pipeline.asked import Options, Trigger
from stillroom.pipeline.report import PipelineReport, Stopped, encode_report
from stillroom.pipeline.run import run_pipeline

__all__ = ["Options", "PipelineReport", "Stopped", "Trigger", "encode_report", "run_pipeline"]
