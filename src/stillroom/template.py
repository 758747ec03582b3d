"""Texts with places to fill in."""

from __future__ import annotations

import re

_VARIABLE = re.compile(r"\{\{ *(\w+) *\}\}")


def render(template: str, **variables: str) -> str:
    """Fill in `{{ name }}`. Raises `LookupError` for a variable that is not given, or given and not used.

    What is filled in is never looked at again: a session that holds `{{ name }}` stays as it is.
    """
    wanted = {match[1] for match in _VARIABLE.finditer(template)}
    if wanted != variables.keys():
        raise LookupError(f"the template wants {sorted(wanted)} and was given {sorted(variables)}")
    return _VARIABLE.sub(lambda match: variables[match[1]], template)
