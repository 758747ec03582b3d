"""Anything else: a decorator for the function that sends the request.

@metered
async def ask(history): ...  # returns something with a `usage`, as an object or as JSON

@metered(reminder="reminder")
def ask(history, *, reminder=None): ...  # gets the text to put at the end of the history, when one is due
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping
from functools import wraps
from typing import Any, ParamSpec, TypeVar, overload

from stillroom.budget.adapters.request import Metering, Request
from stillroom.budget.reported import ReportedUsage, read_usage
from stillroom.budget.session import Session
from stillroom.spending import Usage

_Parameters = ParamSpec("_Parameters")
_Result = TypeVar("_Result")

#: Finds what was used in what the function returned: a `Usage`, a provider's `usage` object, or None.
UsageOf = Callable[[Any], object]


@overload
def metered(function: Callable[_Parameters, _Result], /) -> Callable[_Parameters, _Result]: ...


@overload
def metered(
    *,
    usage: UsageOf = ...,
    reminder: str | None = None,
    session: Session | None = None,
    reserve_tokens: float | None = None,
    window_id: str = "0",
) -> Callable[[Callable[_Parameters, _Result]], Callable[_Parameters, _Result]]: ...


def metered(function: Any = None, /, *, usage: UsageOf | None = None, reminder: str | None = None, **keys: Any) -> Any:
    """Check before the function is called, charge what it returns. Raises `TurnAborted`.

    It may be a coroutine function. `reminder` names the parameter that takes a reminder's text; without it none is
    given. What a generator used is known to its caller only: meter what it sends instead.
    """
    metering = Metering(**keys)

    def decorate(function: Callable[..., Any]) -> Callable[..., Any]:
        if inspect.isgeneratorfunction(function) or inspect.isasyncgenfunction(function):
            raise TypeError(f"`{function.__qualname__}` yields its answer; meter the function that sends the request")

        if inspect.iscoroutinefunction(function):

            @wraps(function)
            async def run_async(*args: Any, **arguments: Any) -> Any:
                request = metering.admit()
                if request is None:
                    return await function(*args, **arguments)
                with request:
                    result = await function(*args, **arguments, **_reminded(request, reminder))
                    _charge(request, result, usage or _usage_attribute)
                return result

            return run_async

        @wraps(function)
        def run(*args: Any, **arguments: Any) -> Any:
            request = metering.admit()
            if request is None:
                return function(*args, **arguments)
            with request:
                result = function(*args, **arguments, **_reminded(request, reminder))
                _charge(request, result, usage or _usage_attribute)
            return result

        return run

    return decorate if function is None else decorate(function)


def _reminded(request: Request, parameter: str | None) -> dict[str, str]:
    if parameter is None:
        request.reminder = None
    return {parameter: request.reminder.text} if parameter and request.reminder else {}


def _charge(request: Request, result: object, usage_of: UsageOf) -> None:
    request.sent()
    found = usage_of(result)
    if isinstance(found, Usage):
        request.charge(found)
        return
    reported = found if isinstance(found, ReportedUsage) else read_usage(_as_json(found))
    request.charge(reported and reported.usage, units=reported and reported.units)


def _usage_attribute(result: object) -> object:
    return result.get("usage") if isinstance(result, Mapping) else getattr(result, "usage", None)


def _as_json(found: object) -> object:
    """The models of the SDKs are objects whose fields are the JSON's."""
    dump = getattr(found, "model_dump", None)
    return dump() if callable(dump) else found
