#!/usr/bin/env python3
"""The cost of checksums at rest through a server.

One server has volumes without limits in one data folder, with and without checksums. fio's nbd engine uses them
in turn over a Unix socket, in an order that changes with the round. A second volume without checksums shows how
much two equal volumes differ. Prints median rates, the least processor time of the server per request of all
rounds, the ratios to the first volume round by round (median, least and most), and the ratio of the least
processor times. Other work on the machine disturbs that one least: it only adds to the processor time.

    python3 crates/weir-bench/sums.py --weir target/release/weir --folder /var/tmp --rounds 9 --seconds 3

The folder is on the file system to measure. Needs fio.
"""

import argparse
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

# Name, fio's rw, request size and queue depth.
WORKLOADS = [
    ("random reads of 4 KiB, depth 32", "randread", "4k", 32),
    ("random writes of 4 KiB, depth 32", "randwrite", "4k", 32),
    ("sequential reads of 1 MiB, depth 4", "read", "1m", 4),
    ("sequential writes of 1 MiB, depth 4", "write", "1m", 4),
]


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


def fio(server, folder, volume, workload, seconds, part):
    """Returns requests per second and microseconds of the server's processor time per request. Without seconds, each
    block of the part is used once, and is durable then."""
    _, rw, block, depth = workload
    output = folder / "fio.json"
    before = cpu_seconds(server.pid)
    command = ["fio", "--name=x", "--ioengine=nbd", f"--size={part}", f"--rw={rw}", f"--bs={block}"]
    command += ["--time_based", f"--runtime={seconds}"] if seconds else ["--end_fsync=1"]
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
    parser.add_argument("--rounds", type=int, default=9)
    parser.add_argument("--seconds", type=int, default=3, help="of each run")
    parser.add_argument("--part", default="256m", help="the part of each volume of 1 GiB that is used")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory(dir=options.folder) as name:
        folder = pathlib.Path(name)
        server = start(pathlib.Path(options.weir).resolve(), folder, "1 GiB")
        try:
            measure(server, folder, options)
        finally:
            server.send_signal(signal.SIGKILL)
            server.wait()


def measure(server, folder, options):
    for volume, _, _ in VOLUMES:
        # So that requests meet bytes that have their place on the disk, and not holes.
        fio(server, folder, volume, WORKLOADS[3], None, options.part)
    print("| workload | volume | median /s | least CPU, us per request | ratio of rates | ratio of CPU | ratio of least CPU |")
    print("|---|---|--:|--:|--:|--:|--:|", flush=True)
    for workload in WORKLOADS:
        runs = [[] for _ in VOLUMES]
        for number in range(options.rounds):
            # In another order each time, since a run can disturb the next one.
            for at in (at % 3 for at in range(number, number + 3)):
                runs[at].append(fio(server, folder, VOLUMES[at][0], workload, options.seconds, options.part))
        for (_, name, _), own in zip(VOLUMES, runs):
            rates, cpus = zip(*own)
            of_rates = [rate / first for rate, (first, _) in zip(rates, runs[0])]
            of_cpus = [cpu / first for cpu, (_, first) in zip(cpus, runs[0])]
            least = min(cpus)
            of_least = least / min(cpu for _, cpu in runs[0])
            print(
                f"| {workload[0]} | {name} | {statistics.median(rates):,.0f} | {least:.2f} "
                f"| {spread(of_rates)} | {spread(of_cpus)} | {of_least:.3f} |",
                flush=True,
            )


if __name__ == "__main__":
    main()
