#!/usr/bin/env python3
"""The cost of checksums at rest through a server.

A server has volumes without limits in a data folder, with and without checksums. fio's nbd engine uses them over a
Unix socket, in all orders in turn. This is repeated in new folders, since the same volume can be 10 % faster in one
folder than in another. A second volume without checksums shows how much two equal volumes differ. Prints median
rates, the least processor time of the server per request of all rounds, the ratios to the first volume round by
round (median, least and most), and the ratio of the least processor times. Other work on the machine disturbs that
one least: it only adds to the processor time.

    python3 crates/weir-bench/sums.py --weir target/release/weir --folder /var/tmp --folders 6 --rounds 6 --seconds 1

The folder is on the file system to measure. Needs fio.
"""

import argparse
import itertools
import json
import os
import pathlib
import signal
import statistics
import subprocess
import sys
import tempfile
import time

VOLUMES = [("plain", "without", False), ("control", "without, another", False), ("summed", "with checksums", True)]

ORDERS = list(itertools.permutations(range(len(VOLUMES))))

# Name, fio's rw, request size, queue depth, the part of a volume that is used, and whether each write is flushed.
WORKLOADS = [
    ("random reads of 4 KiB, depth 32", "randread", "4k", 32, "256m", False),
    ("random writes of 4 KiB, depth 32", "randwrite", "4k", 32, "256m", False),
    ("sequential reads of 1 MiB, depth 4", "read", "1m", 4, "256m", False),
    ("sequential writes of 1 MiB, depth 4", "write", "1m", 4, "256m", False),
    ("writes of 8 KiB with flushes, depth 16", "randwrite", "8k", 16, "256m", True),
    ("the same over 64 GiB", "randwrite", "8k", 16, "64g", True),
]
FILL = ("fill", "write", "1m", 4, "256m", False)


def layout(size):
    volumes = (
        f'[[volume]]\nname = "{name}"\nunlimited = true\nsize = "{size}"\nchecksums = {str(summed).lower()}\n'
        for name, _, summed in VOLUMES
    )
    return "[host]\nunlimited = true\n" + "".join(volumes)


def start(weir, folder, size):
    (folder / "layout.toml").write_text(layout(size))
    command = [weir, "serve", folder / "layout.toml", "--data", folder / "data"]
    command += ["--nbd", f"unix:{folder / 'nbd'}", "--control", folder / "control"]
    server = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    for _ in range(400):
        if (folder / "nbd").exists():
            return server
        if server.poll() is not None:
            break
        time.sleep(0.025)
    sys.exit(f"{weir} does not listen at {folder / 'nbd'}")


def cpu_seconds(pid):
    fields = pathlib.Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def fio(server, folder, volume, workload, seconds):
    """Returns requests per second and microseconds of the server's processor time per request. Without seconds, each
    block of the part is used once, and is durable then."""
    _, rw, block, depth, part, flushes = workload
    output = folder / "fio.json"
    before = cpu_seconds(server.pid)
    command = ["fio", "--name=x", "--ioengine=nbd", f"--size={part}", f"--rw={rw}", f"--bs={block}"]
    command += ["--time_based", f"--runtime={seconds}"] if seconds else ["--end_fsync=1"]
    command += ["--fsync=1"] if flushes else []
    command += [f"--iodepth={depth}", f"--uri=nbd+unix:///{volume}?socket={folder / 'nbd'}"]
    command += ["--output-format=json", f"--output={output}"]
    done = subprocess.run(command, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True)
    if done.returncode != 0:
        sys.exit(f"fio failed against {volume}: {done.stderr}")
    cpu = cpu_seconds(server.pid) - before
    text = output.read_text()
    # fio may print a note before its JSON.
    job = json.loads(text[text.index("{") :])["jobs"][0]
    side = job["read" if rw.endswith("read") else "write"]
    if job["error"] or not side["total_ios"]:
        sys.exit(f"fio had errors against {volume}")
    return side["iops"], cpu / side["total_ios"] * 1e6


def spread(values):
    return f"{statistics.median(values):.3f} ({min(values):.3f} to {max(values):.3f})"


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--weir", required=True, help="the program to measure")
    parser.add_argument("--folder", required=True, help="a folder on the file system to measure")
    # Of both, multiples of 6 have each order equally often.
    parser.add_argument("--rounds", type=int, default=6, help="in each folder")
    parser.add_argument("--folders", type=int, default=6, help="new folders, since places on the disk differ")
    parser.add_argument("--seconds", type=int, default=1, help="of each run")
    parser.add_argument("--only", default="", help="the workloads whose name has this text")
    options = parser.parse_args()
    workloads = [workload for workload in WORKLOADS if options.only in workload[0]]
    runs = {workload[0]: [[] for _ in VOLUMES] for workload in workloads}
    for number in range(options.folders):
        with tempfile.TemporaryDirectory(dir=options.folder) as name:
            folder = pathlib.Path(name)
            server = start(pathlib.Path(options.weir).resolve(), folder, "64 GiB")
            try:
                # Where a file lies on the disk changes its cost: each place in the order of first writes equally often.
                measure(server, folder, options, workloads, ORDERS[number % len(ORDERS)], runs)
            finally:
                server.send_signal(signal.SIGKILL)
                server.wait()
    report(runs)


def measure(server, folder, options, workloads, first_writes, runs):
    for at in first_writes:
        # So that requests meet bytes that have their place on the disk, and not holes.
        fio(server, folder, VOLUMES[at][0], FILL, None)
    for workload in workloads:
        for number in range(options.rounds):
            # Each order equally often, and with nothing left to write back, since a run can disturb the next one.
            for at in ORDERS[number % len(ORDERS)]:
                os.sync()
                result = fio(server, folder, VOLUMES[at][0], workload, options.seconds)
                runs[workload[0]][at].append(result)


def report(runs):
    print("| workload | volume | median /s | least CPU, us per request | ratio of rates | ratio of CPU | ratio of least CPU |")
    print("|---|---|--:|--:|--:|--:|--:|")
    for workload, of_volumes in runs.items():
        for (_, name, _), own in zip(VOLUMES, of_volumes):
            rates, cpus = zip(*own)
            of_rates = [rate / first for rate, (first, _) in zip(rates, of_volumes[0])]
            of_cpus = [cpu / first for cpu, (_, first) in zip(cpus, of_volumes[0])]
            least = min(cpus)
            of_least = least / min(cpu for _, cpu in of_volumes[0])
            print(
                f"| {workload} | {name} | {statistics.median(rates):,.0f} | {least:.2f} "
                f"| {spread(of_rates)} | {spread(of_cpus)} | {of_least:.3f} |"
            )


if __name__ == "__main__":
    main()
