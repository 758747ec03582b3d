"""What an expression for `-m` leaves out."""

from __future__ import annotations

import ast
from itertools import product


def may_want(expression: str, *, always: str) -> bool:
    """Whether an expression may want a test that has the mark `always`, whatever other marks it has.

    >>> may_want("not slow and not interop", always="slow")
    False
    >>> may_want("slow or not slow", always="slow")
    True
    """
    try:
        tree = ast.parse(expression.strip() or "True", mode="eval")
    except SyntaxError:  # pytest will say so
        return True
    names = sorted({node.id for node in ast.walk(tree) if isinstance(node, ast.Name)} - {always})
    return any(
        _holds(tree.body, {always: True, **dict(zip(names, values, strict=True))})
        for values in product((False, True), repeat=len(names))
    )


def _holds(node: ast.expr, marks: dict[str, bool]) -> bool:
    match node:
        case ast.BoolOp(op=ast.And()):
            return all(_holds(part, marks) for part in node.values)
        case ast.BoolOp():
            return any(_holds(part, marks) for part in node.values)
        case ast.UnaryOp(op=ast.Not()):
            return not _holds(node.operand, marks)
        case ast.Name():
            return marks[node.id]
        case _:
            return True
