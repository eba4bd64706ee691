"""Weir: an exact model of the limits of cloud storage.

    import weir

    report = weir.simulate("layout.toml", "jobs.fio", runtime="30s", observe="run.weirobs")
    print(report["jobs"][0]["read"]["iops"])
    print(weir.diagnose("run.weirobs")["summary"])

Results are dicts with the names and units of ``weir VERB --output json``. Quantities are texts with
their units, as on the command line: ``runtime="30s"``, ``size="4TiB"``. Times can be
``datetime.timedelta``, and sizes numbers of bytes.
"""

from __future__ import annotations

import os
import warnings
from collections.abc import Mapping, Sequence
from datetime import timedelta
from typing import Any, cast

from . import _weir
from ._inputs import (
    LayoutLike,
    ObservationLike,
    PathLike,
    SideLike,
    WorkloadLike,
    as_layout,
    as_load,
    as_moment,
    as_names,
    as_number,
    as_observation,
    as_side,
    as_size,
    as_source,
    as_time,
    as_workload,
    pairs,
)
from ._weir import (
    Catalog,
    Error,
    InputError,
    Layout,
    Observation,
    RunError,
    Trace,
    Workload,
    __version__,
)
from .results import ComparisonReport, DiagnosisReport, PlanReport, SimReport

__all__ = [
    "Catalog",
    "Error",
    "InputError",
    "Layout",
    "Observation",
    "RunError",
    "Trace",
    "Workload",
    "__version__",
    "catalog",
    "compare",
    "diagnose",
    "plan",
    "simulate",
]

catalog = Catalog()
"""The built-in editions."""


def simulate(
    layout: LayoutLike,
    workload: WorkloadLike | Trace,
    *,
    runtime: str | timedelta | None = None,
    size: str | int | None = None,
    seed: int = 1,
    every: str | timedelta | None = None,
    observe: PathLike | None = None,
    map: Mapping[str, str] | None = None,
    warm: Sequence[str] = (),
    crash: tuple[str, str | timedelta] | None = None,
) -> SimReport:
    """Predict what a workload gets from a layout, in virtual time (``weir sim``).

    The keys of the report depend on the workload; see :class:`~weir.results.SimReport`.

    :param layout: a :class:`Layout`, the path of a layout file, or a mapping with its keys.
    :param workload: a :class:`Workload`, the path of a fio job file or a description (``.toml``),
        several of these, or a mapping with the keys of a description; a :class:`Trace`, or the path
        of one or several traces.
    :param runtime: the runtime of each job or database, in place of its own.
    :param size: the size of each job, in place of its own.
    :param seed: the seed of the workload, from 0 to 2**64 - 1. Equal seeds give equal results.
    :param every: the length of the intervals over time in the report, and the sampling interval of
        the observation.
    :param observe: a file for an observation of the run. It is replaced when the run is complete.
    :param map: directories or filenames of jobs, or devices of traces, and the volumes or stripes that
        they stand for.
    :param warm: volumes or stripes whose host cache is warm at the start; for jobs and traces.
    :param crash: a host that crashes, and the time of the crash; for jobs.
    :raises InputError: if the layout or the workload is wrong.
    :raises KeyboardInterrupt: on Ctrl-C. The simulation ends then.
    """
    report, notes = _weir.simulate(
        as_layout(layout),
        as_load(workload),
        runtime=as_time("runtime", runtime),
        size=as_size("size", size),
        seed=as_number("seed", seed),
        every=as_time("every", every),
        observe=None if observe is None else os.fspath(observe),
        mapping=pairs(map),
        warm=as_names("warm", warm),
        crash=as_moment("crash", crash),
    )
    for note in notes:
        warnings.warn(note, stacklevel=2)
    return cast(SimReport, report)


def plan(
    need: Mapping[str, Any] | PathLike | None = None,
    *,
    observation: ObservationLike | None = None,
    percentile: float | None = None,
    growth: str | None = None,
    roles: Mapping[str, str] | None = None,
    as_observed: bool = False,
    edition: str | None = None,
    budget: str | float | None = None,
    fastest: bool = False,
    verify: bool = False,
    catalog: Catalog = catalog,
) -> PlanReport:
    """Find the cheapest layout that meets a need (``weir plan``).

    :param need: the path of a need file, or a mapping with its keys, for example
        ``{"data": {"size": "4TiB", "iops": 16000}}``. With an observation it holds what cannot be
        observed: sizes, latencies, working sets.
    :param observation: size for this observed load (``--from``): an :class:`Observation`, or the path
        of one or of a file that ``weir observe import`` reads.
    :param percentile: size for this percentile of the observed samples, 99 by default.
    :param growth: growth to plan for on top of observed sizes and rates, for example ``"30%"``.
    :param roles: disks of the observation and their roles: data, log, tempdb or backup. All others
        are then ignored.
    :param as_observed: size for the observed rates even if the system was throttled, in place of an
        estimate of its demand.
    :param edition: the edition to plan with, in place of that of the need.
    :param budget: find the fastest layout for this price a month instead.
    :param fastest: find the fastest layout within the constraints instead.
    :param verify: simulate the need on the plan, and reject a plan that fails.
    :raises InputError: if the need is wrong. A need that nothing meets is an answer:
        ``is_met`` of the report is false.
    """
    measure = {
        "percentile": None if percentile is None else str(percentile),
        "growth": growth,
        "roles": pairs(roles),
        "as_observed": as_observed,
    }
    if need is None and observation is None:
        raise InputError("there is nothing to plan for: give a need or an observation")
    stray = [name for name, value in measure.items() if value]
    if observation is None and stray:
        raise InputError(f"{stray[0]} needs an observation")
    answer = _weir.plan(
        as_source(need),
        catalog,
        observation=None if observation is None else as_observation(observation),
        measure=measure,
        edition=edition,
        budget=None if budget is None else str(budget),
        fastest=fastest,
        verify=verify,
    )
    return cast(PlanReport, answer)


def diagnose(
    observation: ObservationLike | Sequence[ObservationLike],
    *,
    layout: LayoutLike | None = None,
    edition: str | None = None,
    map: Mapping[str, str] | None = None,
    catalog: Catalog = catalog,
) -> DiagnosisReport:
    """Find the cap that throttles a system, or another cause (``weir diagnose``).

    :param observation: an :class:`Observation`, the path of one or of a file that
        ``weir observe import`` reads, or several of these for one system.
    :param layout: the layout of the system. By default its limits are those of the observed run, or
        those that the observation has. A :class:`Layout` is used with its own catalog.
    :param edition: the edition of the catalog, for a system without a layout.
    :param map: names in the observation, and the names of the layout that they stand for.
    :raises InputError: if the observation has no I/O, or is of another system than the layout.
    """
    if isinstance(observation, (list, tuple)):
        observations = [as_observation(own) for own in observation]
    else:
        observations = [as_observation(cast(ObservationLike, observation))]
    if layout is not None and edition is not None:
        raise InputError("edition is for a system without a layout; leave out one of the two")
    answer = _weir.diagnose(
        observations,
        catalog,
        layout=None if layout is None else as_layout(layout, catalog),
        edition=edition,
        mapping=pairs(map),
    )
    return cast(DiagnosisReport, answer)


def compare(
    first: SideLike,
    second: SideLike,
    *others: SideLike,
    workload: WorkloadLike | None = None,
    layout: LayoutLike | Sequence[LayoutLike] | None = None,
    tolerance: str | float = "5%",
    metrics: Sequence[str] = (),
    subjects: Sequence[str] = (),
    map: Mapping[str, str] | None = None,
    total: bool = False,
    seeds: int = 10,
    seed: int = 1,
    runtime: str | timedelta | None = None,
    catalog: Catalog = catalog,
) -> ComparisonReport:
    """Compare systems, and say which differences are more than noise (``weir compare``).

    A side is an observation, a layout, a result of `simulate`, the path of one of these, or a
    list of repetitions of one measurement.

    :param workload: the workload by which layouts are compared.
    :param layout: the layout of the observed systems, once or once for each side. The editions of a
        :class:`Layout` with its own catalog are known, too.
    :param tolerance: the share by which a side may be worse than the first: ``"5%"`` or ``0.05``.
    :param metrics: decide by these metrics instead of all rates and latencies.
    :param subjects: compare these disks, files, databases or jobs instead of those with most load.
    :param map: names in later sides, and the names of the first side that they stand for.
    :param total: compare the sums of all disks and of all files only.
    :param seeds: the number of simulations of each layout, from 3 to 1000.
    :raises InputError: if the sides have nothing to compare.
    """
    sides = [as_side(own, place, catalog) for place, own in enumerate((first, second, *others))]
    if layout is None:
        layouts = []
    elif isinstance(layout, (list, tuple)):
        layouts = [as_layout(own, catalog) for own in layout]
    else:
        layouts = [as_layout(cast(LayoutLike, layout), catalog)]
    answer = _weir.compare(
        sides,
        catalog,
        workload=None if workload is None else as_workload(workload),
        layouts=layouts,
        tolerance=tolerance if isinstance(tolerance, str) else f"{tolerance * 100:.4f}%",
        metrics=list(metrics),
        subjects=list(subjects),
        mapping=pairs(map),
        total=total,
        seeds=as_number("seeds", seeds, 3, 1000),
        seed=as_number("seed", seed),
        runtime=as_time("runtime", runtime),
    )
    return cast(ComparisonReport, answer)
