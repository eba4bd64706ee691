"""Types of results. They are plain dicts; names and units are those of ``weir VERB --output json``.

A suffix is the unit: ``_s`` seconds, ``_ns`` nanoseconds, ``_bytes`` bytes, ``_bytes_per_s`` bytes per
second. A share is a part of 1. ``None`` is a value that is not known or does not apply.
"""

from __future__ import annotations

from typing import Any, TypedDict


class LatencyReport(TypedDict):
    """A latency distribution. The mean is exact, and percentiles are accurate to 1 %."""

    mean_ns: float
    min_ns: int
    p50_ns: int
    p90_ns: int
    p95_ns: int
    p99_ns: int
    p99_9_ns: int
    max_ns: int


class OpReport(TypedDict):
    """The operations of one kind that a job completed."""

    ios: int
    bytes: int
    iops: float
    bytes_per_s: float
    latency: LatencyReport


class JobReport(TypedDict):
    """A job. ``waits_ns`` is the wait time of all its requests at each limit."""

    name: str
    processes: int
    measured_s: float
    read: OpReport
    write: OpReport
    trim: OpReport
    queue_depth: float
    hit_share: float | None
    waits_ns: dict[str, int]
    medium_ns: int


class _AnySimReport(TypedDict):
    clock: str
    seed: int
    trace_hash: str | None
    notes: list[str]


class SimReport(_AnySimReport, total=False):
    """The result of :func:`weir.simulate`.

    A workload of jobs has ``elapsed_s``, ``jobs``, ``volumes``, ``hosts``, ``series`` and
    ``writebacks``; one of databases and backups has ``databases``, ``backups`` and ``costs``. A trace
    has the keys of jobs, a job for each device of the trace, and the rest: whether its requests are
    late (``behind_most_ns``), and the recorded latencies beside those of the replay (``recorded``).
    """

    elapsed_s: float
    jobs: list[JobReport]
    volumes: list[dict[str, Any]]
    hosts: list[dict[str, Any]]
    series: list[dict[str, Any]]
    writebacks: list[dict[str, Any]]
    databases: list[dict[str, Any]]
    backups: list[dict[str, Any]]
    costs: list[dict[str, Any]]
    pace: str
    is_closed: bool
    requests: int
    recorded_s: float
    due_s: float
    late: int
    late_most_ns: int
    behind_most_ns: int
    behind_ns: int
    is_whole: bool
    in_flight: int
    unissued: int
    recorded: list[dict[str, Any]]


class PlanChoice(TypedDict):
    """A layout with its price a month."""

    family: str
    title: str
    layout: str
    month: Any
    unpriced: int
    disks: int
    lines: list[dict[str, Any]]
    caps: list[dict[str, Any]]
    binding: str | None
    key_points: list[str]
    reasons: list[str]


class PlanReport(TypedDict):
    """The result of :func:`weir.plan`. ``plan`` is ``None`` if nothing meets the need."""

    is_met: bool
    edition: str
    region: str | None
    currency: str | None
    plan: PlanChoice | None
    present: dict[str, Any] | None
    others: list[dict[str, Any]]
    passed_over: dict[str, Any] | None
    cheaper: dict[str, Any] | None
    better: dict[str, Any] | None
    relaxations: list[dict[str, Any]]
    verified: list[dict[str, Any]]
    compared: int
    unranked: str | None
    unpriced_machines: list[dict[str, Any]]
    notes: list[str]


class Finding(TypedDict):
    """A finding of the diagnosis, with its evidence and the fix."""

    check_id: int
    rule: str
    priority: int
    group: str
    finding: str
    subject: str
    subjects: list[str]
    cap: str | None
    limit: float | None
    is_bytes: bool
    wait_ns: float
    confidence: str
    evidence: list[str]
    moments: list[dict[str, Any]]
    ruled_out: list[str]
    action: str
    effect: dict[str, Any] | None
    source: dict[str, str]


class MetricReport(TypedDict):
    """A metric of two sides. ``p`` is corrected for all metrics of the comparison."""

    kind: str
    subject: str
    metric: str
    unit: str
    better: str
    decides: bool
    a: float
    b: float
    change: float | None
    change_low: float | None
    change_high: float | None
    p: float | None
    outcome: str


class PairReport(TypedDict):
    """A side, compared with the first."""

    side: str
    metrics: list[MetricReport]


class ComparisonReport(TypedDict):
    """The result of :func:`weir.compare`."""

    is_worse: bool
    is_undecided: bool
    verdict: str
    decided_by: dict[str, Any] | None
    tolerance: float
    significance: float
    test: str
    tested: int
    sides: list[dict[str, Any]]
    comparisons: list[PairReport]
    notes: list[str]


class DiagnosisReport(TypedDict):
    """The result of :func:`weir.diagnose`."""

    verdict: str
    summary: str
    inputs: list[str]
    span_s: list[float]
    samples: int
    interval_s: float
    limits_source: str
    findings: list[Finding]
    caps: list[dict[str, Any]]
    subjects: list[dict[str, Any]]
    notes: list[str]
