#!/usr/bin/env python3
"""A sweep on a Ray cluster: disks, queue depths and seeds, one simulation for each combination.

    $ pip install weir 'ray[client]'
    $ python ray_sweep.py --out sweep.csv                                # two workers on this machine
    $ python ray_sweep.py --out sweep.csv --address ray://head:10001     # a cluster
    $ python ray_sweep.py --out sweep.csv --without-ray                  # this process, for comparison

A point of the sweep is a number, and its parameters and its seed follow from that number. Results
therefore depend neither on the number of workers nor on the order in which they complete, and a task
whose worker dies is repeated on another one with the same result. `--kill-worker` ends one of the two
local workers in the middle, which shows that.
"""

from __future__ import annotations

import argparse
import csv
import hashlib
import itertools
import os
import sys
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

import weir

SIZES_GIB = [128, 256, 512, 1024, 2048]
DEPTHS = [1, 2, 4, 8, 16, 32, 64, 128]
REQUESTS = ["4k", "8k", "64k", "256k"]
COMBINATIONS = list(itertools.product(SIZES_GIB, DEPTHS, REQUESTS))
# Points of a task: a task should take a second or more, or Ray's own work counts.
TASK = 25
COLUMNS = ["point", "size_gib", "depth", "request", "seed", "iops", "p99_ns", "trace_hash"]

Row = dict[str, Any]


def simulate(point: int) -> Row:
    """Simulate a point of the sweep."""
    size_gib, depth, request = COMBINATIONS[point % len(COMBINATIONS)]
    seed = 1 + point // len(COMBINATIONS)
    layout = weir.Layout(
        {
            "edition": "azure-now",
            "host": {"size": "D8s_v3"},
            "volume": [{"name": "data", "size": f"{size_gib} GiB"}],
        }
    )
    jobs = weir.Workload.from_fio(
        "[reads]\nrw=randread\nioengine=libaio\ndirect=1\nsize=1g\ntime_based\nruntime=100ms\n"
        f"bs={request}\niodepth={depth}\n"
    )
    report = weir.simulate(layout, jobs, seed=seed)
    reads = report["jobs"][0]["read"]
    return {
        "point": point,
        "size_gib": size_gib,
        "depth": depth,
        "request": request,
        "seed": seed,
        "iops": reads["iops"],
        "p99_ns": reads["latency"]["p99_ns"],
        "trace_hash": report["trace_hash"],
    }


def simulate_all(points: list[int]) -> list[Row]:
    """Simulate the points of a task."""
    return [simulate(point) for point in points]


def tasks(simulations: int) -> list[list[int]]:
    """Divide the points into tasks."""
    points = list(range(simulations))
    return [points[at : at + TASK] for at in range(0, simulations, TASK)]


def on_ray(simulations: int, address: str | None, kill_worker: bool) -> Iterator[Row]:
    """Simulate the points on a cluster, or on two local workers."""
    import ray

    cluster, victim = None, None
    if address is None:
        from ray.cluster_utils import Cluster

        # The head only schedules, so that the loss of a worker is like the loss of a machine.
        cluster = Cluster(initialize_head=True, head_node_args={"num_cpus": 0})
        workers = [cluster.add_node(num_cpus=1) for _ in range(2)]
        victim = workers[0]
        address = cluster.address
    ray.init(address=address, log_to_driver=False)
    try:
        task = ray.remote(num_cpus=1, max_retries=5)(simulate_all)
        pending = [task.remote(points) for points in tasks(simulations)]
        half, done = len(pending) // 2, 0
        while pending:
            ready, pending = ray.wait(pending)
            for result in ready:
                yield from ray.get(result)
            done += len(ready)
            if kill_worker and victim is not None and cluster is not None and done >= half:
                cluster.remove_node(victim, allow_graceful=False)
                print("killed one of two workers", file=sys.stderr)
                victim = None
    finally:
        ray.shutdown()
        if cluster is not None:
            cluster.shutdown()


def write(rows: Iterable[Row], path: Path) -> str:
    """Write the rows in the order of their points, as a whole; return the hash of the file."""
    part = path.with_name(f".{path.name}.{os.getpid()}.part")
    with part.open("x", newline="") as file:
        try:
            table = csv.DictWriter(file, COLUMNS)
            table.writeheader()
            table.writerows(sorted(rows, key=lambda row: int(row["point"])))
            file.flush()
            part.replace(path)
        except BaseException:
            part.unlink(missing_ok=True)
            raise
    return hashlib.sha256(path.read_bytes()).hexdigest()


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("--simulations", type=int, default=10_000)
    parser.add_argument("--out", type=Path, required=True, help="write the results to this file")
    parser.add_argument("--address", help="address of a cluster [default: two local workers]")
    parser.add_argument("--kill-worker", action="store_true", help="end a local worker midway")
    parser.add_argument("--without-ray", action="store_true", help="use this process only")
    args = parser.parse_args()
    if args.kill_worker and (args.address or args.without_ray):
        parser.error("--kill-worker is for the two local workers")
    if args.without_ray:
        rows: Iterable[Row] = simulate_all(list(range(args.simulations)))
    else:
        rows = on_ray(args.simulations, args.address, args.kill_worker)
    digest = write(rows, args.out)
    print(f"{args.out}: simulations: {args.simulations}, sha256: {digest}")


if __name__ == "__main__":
    main()
