"""OpenAI's rule for strict schemas, as far as it concerns us: closed objects, everything required."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any


def schema_fault(schema: object, where: str = "schema") -> str | None:
    """What a strict API would refuse in `schema`; None when it would take it."""
    if not isinstance(schema, Mapping):
        return f"{where} is not an object"
    if "type" not in schema and not {"anyOf", "$ref", "enum", "const"} & schema.keys():
        return f"{where} has no type"
    if schema.get("type") == "object":
        properties = schema.get("properties") or {}
        if schema.get("additionalProperties") is not False:
            return f"{where}: `additionalProperties` must be false"
        if set(schema.get("required") or ()) != set(properties):
            return f"{where}: `required` must name every property"
    for name, child in _children(schema):
        if (fault := schema_fault(child, f"{where}.{name}")) is not None:
            return fault
    return None


def sent_schema(text: Mapping[str, Any] | None, response_format: Mapping[str, Any] | None) -> object | None:
    """The strict schema in these fields of a request, whose names OpenAI's protocols gave them; None without one."""
    form = (text or {}).get("format") or {}
    if form.get("type") == "json_schema":
        return form.get("schema") if form.get("strict") else {}
    form = response_format or {}
    if form.get("type") == "json_schema":
        wrapped = form.get("json_schema") or {}
        return wrapped.get("schema") if wrapped.get("strict") else {}
    return None


def _children(schema: Mapping[str, Any]) -> list[tuple[str, Any]]:
    found = list((schema.get("properties") or {}).items())
    found += [(f"anyOf[{index}]", child) for index, child in enumerate(schema.get("anyOf") or ())]
    if "items" in schema:
        found.append(("items", schema["items"]))
    return found
