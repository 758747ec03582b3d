"""The engine that needs no model: rules that find preferences, failures and fixes, commands, files."""

from stillroom.offline.folder.consolidate import consolidate
from stillroom.offline.session.distil import distil

__all__ = ["consolidate", "distil"]
