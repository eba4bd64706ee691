#!/usr/bin/env python3
"""A diagnosis of a fleet on Dask or Ray: one observation for each server, and one summary.

    $ pip install weir 'dask[distributed]' 'ray[client]'
    $ python fleet.py fleet/ --make 2000                     # simulate observations first
    $ python fleet.py fleet/                                 # two workers of Dask on this machine
    $ python fleet.py fleet/ --on ray                        # two workers of Ray on this machine
    $ python fleet.py fleet/ --address tcp://scheduler:8786  # a cluster whose workers read fleet/, too
    $ python fleet.py fleet/ --on ray --address ray://head:10001
    $ python fleet.py fleet/ --on here                       # this process, for comparison

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
from collections.abc import Iterable, Iterator
from functools import reduce
from pathlib import Path
from typing import Any

import weir

Summary = dict[str, Counter[str]]
# A function with its arguments.
Call = tuple[Any, ...]


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


def total(results: Iterable[Summary]) -> Summary:
    """Add up the counts of all servers."""
    empty: Summary = {"verdicts": Counter(), "caps": Counter(), "findings": Counter()}
    return reduce(merge, results, empty)


def here(calls: list[Call], _address: str | None, _kill_worker: bool) -> Iterator[Any]:
    """Do the work in this process."""
    return (function(*arguments) for function, *arguments in calls)


def on_dask(calls: list[Call], address: str | None, kill_worker: bool) -> Iterator[Any]:
    """Do the work on a cluster, or on two local workers."""
    from dask.distributed import Client, LocalCluster, as_completed

    cluster = None
    if address is None:
        cluster = LocalCluster(n_workers=2, threads_per_worker=1, dashboard_address=None)
        address = cluster.scheduler_address
    client = Client(address)
    try:
        tasks = [client.submit(*call, pure=False) for call in calls]
        for done, (_, result) in enumerate(as_completed(tasks, with_results=True), start=1):
            yield result
            if kill_worker and done == max(1, len(calls) // 2):
                os.kill(next(iter(client.run(os.getpid).values())), signal.SIGKILL)
                print("killed one of two workers", file=sys.stderr)
    finally:
        client.close()
        if cluster is not None:
            cluster.close()


def on_ray(calls: list[Call], address: str | None, kill_worker: bool) -> Iterator[Any]:
    """Do the work on a cluster, or on two local workers."""
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
        remote: Any = ray.remote(num_cpus=1, max_retries=5)
        tasks = {function: remote(function) for function, *_ in calls}
        pending: list[Any] = [tasks[function].remote(*arguments) for function, *arguments in calls]
        done = 0
        while pending:
            ready, pending = ray.wait(pending)
            yield from ray.get(ready)
            done += len(ready)
            is_half = done >= max(1, len(calls) // 2)
            if kill_worker and is_half and victim is not None and cluster is not None:
                cluster.remove_node(victim, allow_graceful=False)
                print("killed one of two workers", file=sys.stderr)
                victim = None
    finally:
        ray.shutdown()
        if cluster is not None:
            cluster.shutdown()


ENGINES = {"dask": on_dask, "ray": on_ray, "here": here}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("folder", type=Path, help="folder with one .weirobs for each server")
    parser.add_argument("--make", type=int, metavar="N", help="simulate N observations first")
    parser.add_argument("--on", choices=ENGINES, default="dask", help="engine [default: dask]")
    parser.add_argument("--address", help="address of a cluster [default: two local workers]")
    parser.add_argument(
        "--out", type=Path, help="file of the summary [default: standard output, which Ray also writes to]"
    )
    parser.add_argument("--kill-worker", action="store_true", help="end a local worker midway")
    args = parser.parse_args()
    if args.address and args.on == "here":
        parser.error("--address is for dask and ray")
    if args.kill_worker and (args.address or args.on == "here"):
        parser.error("--kill-worker is for the two local workers")
    engine = ENGINES[args.on]
    # Workers may have another working directory.
    folder = args.folder.resolve()
    if args.make is not None:
        folder.mkdir(parents=True, exist_ok=True)
        calls = [(make, str(folder), server) for server in range(args.make)]
        paths = sorted(engine(calls, args.address, False))
    else:
        paths = sorted(str(path) for path in folder.glob("*.weirobs"))
    if not paths:
        parser.error(f"{args.folder}: has no observations (*.weirobs)")
    summary = total(engine([(diagnose, path) for path in paths], args.address, args.kill_worker))
    answer: dict[str, Any] = {"servers": len(paths)}
    answer.update({key: dict(sorted(own.items())) for key, own in summary.items()})
    text = json.dumps(answer, indent=2) + "\n"
    if args.out is None:
        print(text, end="")
    else:
        args.out.write_text(text)


if __name__ == "__main__":
    main()
