#!/usr/bin/env python3
"""Measures what weir.simulate costs beyond the Rust call, in pairs of calls in one process.

    $ pip wheel --no-deps crates/weir-python && pip install weir-*.whl
    $ python crates/weir-python/bench.py

Python's side starts from what a user writes: a layout as a dict, and the text of a job file. The Rust call
gets both parsed, and ends with the report in JSON.
"""

from __future__ import annotations

import statistics
import time
from typing import Any

import weir
from weir import _weir

PAIRS = 200
LAYOUT: dict[str, Any] = {
    "edition": "azure-now",
    "host": {"size": "D8s_v3"},
    "volume": [{"name": f"data-{at}", "size": "540 GiB"} for at in range(8)],
}
JOBS = "".join(
    f"[job-{at}]\nrw=randrw\nioengine=libaio\ndirect=1\nsize=1g\niodepth=8\ntime_based\n"
    f"runtime=100ms\nfilename=data-{at}\n"
    for at in range(8)
)


def main() -> None:
    layout, workload = weir.Layout(LAYOUT), weir.Workload.from_fio(JOBS)
    python, rust = [], []
    for _ in range(PAIRS):
        start = time.perf_counter()
        weir.simulate(LAYOUT, weir.Workload.from_fio(JOBS))
        python.append(time.perf_counter() - start)
        rust.append(_weir._seconds_without_python(layout, workload))
    more = [one - other for one, other in zip(python, rust)]
    print(f"pairs of calls:   {PAIRS}")
    print(f"weir.simulate:    {statistics.median(python) * 1e3:.2f} ms (median)")
    print(f"the Rust call:    {statistics.median(rust) * 1e3:.2f} ms (median)")
    deciles = statistics.quantiles(more, n=10)
    print(f"Python's part:    {statistics.median(more) * 1e3:.2f} ms (median)")
    print(f"                  {deciles[-1] * 1e3:.2f} ms (90th percentile)")


if __name__ == "__main__":
    main()
