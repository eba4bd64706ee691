#!/usr/bin/env python3
"""A diagnosis of a fleet on Dask: one observation for each server, and one summary.

    $ pip install weir 'dask[distributed]'
    $ python dask_fleet.py fleet/                                     # two workers on this machine
    $ python dask_fleet.py fleet/ --address tcp://scheduler:8786      # a cluster that reads fleet/, too
    $ python dask_fleet.py fleet/ --make 2000                         # simulate observations first

Each server is diagnosed on its own, and the summary consists of counts. Counts add up, so the result
depends neither on the number of workers nor on the order, and a task whose worker dies is repeated.
`--kill-worker` ends one of the two local workers in the middle, which shows that.

`weir diagnose` finds who is throttled on one machine; this script is for fleets that need several.
"""

from __future__ import annotations

import argparse
import json
import os
import signal
import sys
from collections import Counter
from pathlib import Path
from typing import Any

import weir

Summary = dict[str, Counter[str]]


def make(folder: str, server: int) -> str:
    """Simulate a minute of a server and write its observation. One server in three is throttled."""
    layout = weir.Layout(
        {
            "edition": "azure-now",
            "host": {"size": "D8s_v3"},
            "volume": [{"name": "data", "size": "512 GiB"}],
        },
    )
    rate = [200, 400, 4000][server % 3]
    jobs = weir.Workload.from_fio(
        "[load]\nrw=randrw\nioengine=libaio\nbs=8k\ndirect=1\nsize=1g\niodepth=32\n"
        f"rate_iops={rate}\ntime_based\nruntime=60\n"
    )
    path = Path(folder) / f"server-{server:05}.weirobs"
    weir.simulate(layout, jobs, seed=server + 1, observe=path)
    return str(path)


def diagnose(path: str) -> Summary:
    """Diagnose a server; the counts of one."""
    report = weir.diagnose(path)
    caps = {finding["cap"] for finding in report["findings"] if finding["cap"] is not None}
    return {
        "verdicts": Counter([report["verdict"]]),
        "caps": Counter(cap for cap in caps if cap is not None),
        "findings": Counter({finding["rule"] for finding in report["findings"]}),
    }


def merge(one: Summary, other: Summary) -> Summary:
    """Add the counts of two parts of the fleet."""
    return {key: one[key] + other[key] for key in one}


def on_dask(
    paths: list[str], address: str | None, kill_worker: bool, make_in: str | None
) -> Summary:
    """Diagnose the servers on a cluster, or on two local workers."""
    from dask.distributed import Client, LocalCluster, as_completed

    cluster = None
    if address is None:
        cluster = LocalCluster(n_workers=2, threads_per_worker=1, dashboard_address=None)
        address = cluster.scheduler_address
    client = Client(address)
    try:
        if make_in is not None:
            made = client.map(make, [make_in] * len(paths), range(len(paths)), pure=False)
            paths = client.gather(made)
            del made
        tasks = client.map(diagnose, paths, pure=False)
        summary: Summary = {"verdicts": Counter(), "caps": Counter(), "findings": Counter()}
        done = 0
        for _, own in as_completed(tasks, with_results=True):
            summary = merge(summary, own)
            done += 1
            if kill_worker and done == len(paths) // 2:
                os.kill(next(iter(client.run(os.getpid).values())), signal.SIGKILL)
                print("killed one of two workers", file=sys.stderr)
        return summary
    finally:
        client.close()
        if cluster is not None:
            cluster.close()


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("folder", type=Path, help="folder with one .weirobs for each server")
    parser.add_argument("--make", type=int, metavar="N", help="simulate N observations first")
    parser.add_argument("--address", help="address of a scheduler [default: two local workers]")
    parser.add_argument("--kill-worker", action="store_true", help="end a local worker midway")
    parser.add_argument("--without-dask", action="store_true", help="use this process only")
    args = parser.parse_args()
    if args.kill_worker and (args.address or args.without_dask):
        parser.error("--kill-worker is for the two local workers")
    if args.make is not None:
        args.folder.mkdir(parents=True, exist_ok=True)
        paths = [str(server) for server in range(args.make)]
    else:
        paths = sorted(str(path) for path in args.folder.glob("*.weirobs"))
    if not paths:
        parser.error(f"{args.folder}: has no observations (*.weirobs)")
    make_in = str(args.folder) if args.make is not None else None
    if args.without_dask:
        if make_in is not None:
            paths = [make(make_in, server) for server in range(len(paths))]
        summary: Summary = {"verdicts": Counter(), "caps": Counter(), "findings": Counter()}
        for path in paths:
            summary = merge(summary, diagnose(path))
    else:
        summary = on_dask(paths, args.address, args.kill_worker, make_in)
    answer: dict[str, Any] = {"servers": len(paths)}
    answer.update({key: dict(sorted(own.items())) for key, own in summary.items()})
    print(json.dumps(answer, indent=2))


if __name__ == "__main__":
    main()
