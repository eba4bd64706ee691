"""Arguments in the forms that callers have them in, as those of the native module."""

from __future__ import annotations

import json
import operator
import os
from collections.abc import Iterable, Mapping, Sequence
from datetime import timedelta
from typing import Any, Union

from ._weir import Catalog, InputError, Layout, Observation, Trace, Workload, _is_trace

PathLike = Union[str, "os.PathLike[str]"]
LayoutLike = Union[Layout, PathLike, Mapping[str, Any]]
WorkloadSource = Union[PathLike, Mapping[str, Any]]
WorkloadLike = Union[Workload, WorkloadSource, Sequence[WorkloadSource]]
ObservationLike = Union[Observation, PathLike]
SideInput = Union[Observation, Layout, PathLike, Mapping[str, Any]]
SideLike = Union[SideInput, Sequence[SideInput]]

_SUFFIX_OF_TOML = ".toml"
_LONGEST_RESULT = 1 << 28
_LARGEST_SEED = (1 << 64) - 1


def as_source(value: Any) -> Any:
    """Return a mapping of any class as a dict; the native module refuses what is neither path nor dict."""
    return dict(value) if isinstance(value, Mapping) else value


def as_layout(value: LayoutLike, catalog: Catalog | None = None) -> Layout:
    return value if isinstance(value, Layout) else Layout(as_source(value), catalog)


def as_workload(value: WorkloadLike) -> Workload:
    if isinstance(value, Workload):
        return value
    if isinstance(value, (list, tuple)):
        return Workload(*[as_source(own) for own in value])
    return Workload(as_source(value))


def as_load(value: WorkloadLike | Trace) -> Workload | Trace:
    """Return a workload, or traces if all paths lead to traces."""
    if isinstance(value, (Workload, Trace)):
        return value
    sources = value if isinstance(value, (list, tuple)) else [value]
    traces = [own for own in sources if isinstance(own, (str, os.PathLike)) and _is_trace(own)]
    if not traces:
        return as_workload(value)
    others = [own for own in sources if own not in traces]
    if others:
        raise InputError(f"{traces[0]} is a trace and {others[0]} is not; give traces or jobs")
    return Trace(*traces)


def as_names(name: str, values: Iterable[str]) -> list[str]:
    """Return a list of names; a text would be a list of letters."""
    names = [values] if isinstance(values, str) else list(values)
    if isinstance(values, str) or not all(isinstance(own, str) for own in names):
        raise TypeError(f"{name} is {values!r}; expected a list of names")
    return names


def as_moment(
    name: str, value: tuple[str, str | timedelta] | None
) -> tuple[str, str] | None:
    """Return a host and a time."""
    if value is None:
        return None
    if not isinstance(value, tuple) or len(value) != 2 or not isinstance(value[0], str):
        raise TypeError(f'{name} is {value!r}; expected a host and a time, such as ("host", "10s")')
    time = as_time(name, value[1])
    if time is None:
        raise TypeError(f"{name} is {value!r}; it has no time")
    return value[0], time


def as_observation(value: ObservationLike) -> Observation:
    if isinstance(value, Observation):
        return value
    if isinstance(value, (str, os.PathLike)):
        return Observation(value)
    kind = type(value).__name__
    raise TypeError(f"observation is of type {kind}; expected a weir.Observation or a path")


def as_side(
    value: SideLike, place: int, catalog: Catalog
) -> tuple[str, list[Layout | Observation | str]]:
    """Return a side with its name."""
    if isinstance(value, (list, tuple)):
        inputs = [_as_input(own, catalog) for own in value]
        names = [name for own in value if (name := _name(own)) is not None]
        return ", ".join(names) or f"side {place + 1}", inputs
    own: Any = value
    return _name(own) or f"side {place + 1}", [_as_input(own, catalog)]


def _name(value: Any) -> str | None:
    if isinstance(value, (Layout, Observation)):
        return value.name
    return os.fspath(value) if isinstance(value, (str, os.PathLike)) else None


def _as_input(value: SideInput, catalog: Catalog) -> Layout | Observation | str:
    if isinstance(value, (Layout, Observation)):
        return value
    if isinstance(value, Mapping):
        return json.dumps(value)
    if not isinstance(value, (str, os.PathLike)):
        kind = type(value).__name__
        raise TypeError(
            f"a side is of type {kind}; expected an observation, a layout, a result or a path"
        )
    path = os.fspath(value)
    if path.endswith(_SUFFIX_OF_TOML):
        return Layout(path, catalog)
    return _result(path) or Observation(path)


def _result(path: str) -> str | None:
    """Return the text of a result of Weir; other JSON is imported as an observation."""
    try:
        if os.path.getsize(path) > _LONGEST_RESULT:
            return None
        with open(path, "rb") as file:
            if file.read(64).lstrip()[:1] not in (b"{", b"["):
                return None
        with open(path, encoding="utf-8") as text:
            document = text.read()
    except (OSError, UnicodeDecodeError):
        # Reading it as an observation says what is wrong.
        return None
    return document if Observation._is_result(document) else None


def as_time(name: str, value: str | timedelta | None) -> str | None:
    """Return a time with its unit."""
    if value is None or isinstance(value, str):
        return value
    if isinstance(value, timedelta):
        micros = value // timedelta(microseconds=1)
        return f"{micros}us"
    kind = type(value).__name__
    raise TypeError(f'{name} is of type {kind}; expected a text such as "30s" or a timedelta')


def as_size(name: str, value: str | int | None) -> str | None:
    """Return a size with its unit."""
    if value is None or isinstance(value, str):
        return value
    if isinstance(value, int) and not isinstance(value, bool):
        return f"{value}B"
    kind = type(value).__name__
    raise TypeError(f'{name} is of type {kind}; expected a text such as "4GiB" or a number of bytes')


def as_number(name: str, value: int, least: int = 0, most: int = _LARGEST_SEED) -> int:
    """Return a whole number within limits."""
    try:
        number = operator.index(value)
    except TypeError:
        kind = type(value).__name__
        raise TypeError(f"{name} is of type {kind}; expected a whole number") from None
    if not least <= number <= most:
        raise InputError(f"{name} {number}: is not a number from {least} to {most}")
    return number


def pairs(mapping: Mapping[str, str] | None) -> list[tuple[str, str]]:
    return [] if mapping is None else list(mapping.items())
