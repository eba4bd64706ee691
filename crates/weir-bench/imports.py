#!/usr/bin/env python3
"""What `weir observe import` takes: inputs of 150 MB of each of the usual kinds are made in
a temporary folder, the same each time, and imported one after the other. Prints MB/s (10^6
bytes of the input, by the clock and by the processor's time), the memory of the process at its
most and the size of the observation, as a table in Markdown.

    cargo build --release
    python3 crates/weir-bench/imports.py target/release/weir [--rounds 3] [--only vmstat]

Needs nothing but Python.
"""

import argparse
import os
import random
import statistics
import subprocess
import sys
import tempfile
import time
from datetime import datetime, timedelta, timezone

START = datetime(2019, 4, 18, 13, 20, 19, tzinfo=timezone.utc)
# Rows are drawn from so many that were made up before.
POOL = 500


def times(seconds=1):
    """Moments, so many seconds apart."""
    at = START
    while True:
        yield at
        at += timedelta(seconds=seconds)


def rates(dice):
    """What a busy disk does, in the order of iostat's columns."""
    r, w = dice.uniform(0, 5000), dice.uniform(0, 3000)
    return [
        r, r * 16, dice.uniform(0, 5), dice.uniform(0, 1), dice.uniform(0, 20), 16.0,
        w, w * 8, dice.uniform(0, 50), dice.uniform(0, 10), dice.uniform(0, 40), 8.0,
        0.0, 0.0, 0.0, 0.0, 0.0, 0.0, dice.uniform(0, 90), dice.uniform(0, 5),
        dice.uniform(0, 64), dice.uniform(0, 100),
    ]


IOSTAT = (
    "r/s rkB/s rrqm/s %rrqm r_await rareq-sz w/s wkB/s wrqm/s %wrqm w_await wareq-sz "
    "d/s dkB/s drqm/s %drqm d_await dareq-sz f/s f_await aqu-sz %util"
).split()
DEVICES = ["sda", "sdb", "sdc", "sdd"] + [f"nvme{n}n1" for n in range(12)]
CPU = ["user", "nice", "system", "iowait", "steal", "idle"]


def cpu(dice):
    busy = [dice.uniform(0, 15) for _ in CPU[:-1]]
    return busy + [100 - sum(busy)]


def iostat(dice):
    """iostat -xt 1, 16 devices."""
    yield "Linux 5.15.0-1 (db1) \t04/18/19 \t_x86_64_\t(16 CPU)\n\n"
    head = "Device     " + "".join(f"{name:>9}" for name in IOSTAT) + "\n"
    rows = ["".join(f"{value:9.2f}" for value in rates(dice)) + "\n" for _ in range(POOL)]
    for at in times():
        yield f"{at:%m/%d/%y %H:%M:%S}\n"
        yield "avg-cpu: " + "".join(f"{'%' + name:>8}" for name in CPU) + "\n"
        yield "         " + "".join(f"{value:8.2f}" for value in cpu(dice)) + "\n\n" + head
        yield "".join(f"{device:<11}{dice.choice(rows)}" for device in DEVICES) + "\n"


def iostat_json(dice):
    """iostat -xt -o JSON 1, 16 devices."""
    yield '{"sysstat": {\n\t"hosts": [\n\t\t{\n\t\t\t"nodename": "db1",\n\t\t\t"sysname": "Linux",\n'
    yield '\t\t\t"release": "5.15.0-1",\n\t\t\t"machine": "x86_64",\n\t\t\t"number-of-cpus": 16,\n'
    yield '\t\t\t"date": "2019-04-18",\n\t\t\t"statistics": [\n'
    names = [name.replace("%", "") for name in IOSTAT]
    pair = '"{}": {:.2f}'.format
    rows = [", ".join(map(pair, names, rates(dice))) for _ in range(POOL)]
    end = ""
    for at in times():
        yield f'{end}\t\t\t\t{{\n\t\t\t\t\t"timestamp": "{at:%Y-%m-%dT%H:%M:%SZ}",\n'
        yield '\t\t\t\t\t"avg-cpu":  {' + ", ".join(map(pair, CPU, cpu(dice))) + "},\n"
        yield '\t\t\t\t\t"disk": [\n'
        disk = '\t\t\t\t\t\t{{"disk_device": "{}", {}}}'.format
        yield ",\n".join(disk(device, dice.choice(rows)) for device in DEVICES)
        yield "\n\t\t\t\t\t]\n"
        end = "\t\t\t\t},\n"
    # The last one is closed by `ENDS`.


def vmstat(dice):
    """vmstat 1, with the time that a collector puts before each line."""
    columns = "r b swpd free buff cache si so bi bo in cs us sy id wa st".split()
    widths = [2, 2, 6, 6, 6, 6, 4, 4, 5, 5, 4, 4, 2, 2, 2, 2, 2]
    line = lambda words: " ".join(f"{word:>{w}}" for word, w in zip(words, widths)) + "\n"
    row = lambda: line([
        dice.randrange(30), dice.randrange(9), 19876, dice.randrange(10**6, 10**7), 11100,
        62020016, 0, 0, dice.randrange(10**5), dice.randrange(10**5), dice.randrange(10**5),
        dice.randrange(10**6), dice.randrange(50), dice.randrange(25), dice.randrange(25), 1, 0,
    ])
    rows = [row() for _ in range(POOL)]
    for count, at in enumerate(times()):
        stamp = f"{at:%Y-%m-%d %H:%M:%S}.{dice.randrange(10**6):06}\t"
        if count % 20 == 0:
            yield stamp + "procs -----------memory---------- ---swap-- -----io---- --system--\n"
            yield stamp + line(columns)
        yield stamp + dice.choice(rows)


def sadf_d(dice):
    """sadf -d -- -d, 16 devices."""
    yield "# hostname;interval;timestamp;DEV;tps;rkB/s;wkB/s;dkB/s;areq-sz;aqu-sz;await;%util\n"
    row = lambda: ";".join(f"{dice.uniform(0, most):.2f}" for most in
                           [9000, 90000, 90000, 10, 64, 32, 40, 100]) + "\n"
    rows = [row() for _ in range(POOL)]
    for at in times(10):
        before = f"db1;10;{at:%Y-%m-%d %H:%M:%S} UTC;"
        yield "".join(f"{before}{device};{dice.choice(rows)}" for device in DEVICES)


def sar(dice):
    """sar -d 10, 16 devices."""
    yield "Linux 5.15.0-1 (db1) \t04/18/19 \t_x86_64_\t(16 CPU)\n\n"
    row = lambda: "".join(f"{dice.uniform(0, most):10.2f}" for most in
                          [9000, 90000, 90000, 10, 64, 32, 40, 100]) + "\n"
    rows = [row() for _ in range(POOL)]
    head = "".join(f"{name:>10}" for name in
                   "DEV tps rkB/s wkB/s dkB/s areq-sz aqu-sz await %util".split()) + "\n"
    for at in times(10):
        stamp = f"{at:%H:%M:%S}  "
        yield stamp + head
        yield "".join(f"{stamp}{device:>10}{dice.choice(rows)}" for device in DEVICES) + "\n"


def file_stats(dice):
    """sys.dm_io_virtual_file_stats, 100 files again and again."""
    yield ("collection_time,database_id,file_id,sample_ms,num_of_reads,num_of_bytes_read,"
           "io_stall_read_ms,io_stall_queued_read_ms,num_of_writes,num_of_bytes_written,"
           "io_stall_write_ms,io_stall_queued_write_ms,io_stall,size_on_disk_bytes\n")
    files = [[0] * 4 for _ in range(100)]
    for count, at in enumerate(times()):
        stamp = f"{at:%Y-%m-%d %H:%M:%S}.{dice.randrange(1000):03}"
        for number, own in enumerate(files):
            more = dice.randrange(1000)
            own[0] += more
            own[1] += more * 2
            own[2] += more // 3
            own[3] += more * 4
            r, rms, w, wms = own
            yield (f"{stamp},{5 + number // 10},{1 + number % 10},{9000000 + count * 1000},{r},"
                   f"{r * 8192},{rms},{rms // 2},{w},{w * 65536},{wms},{wms // 2},{rms + wms},"
                   f"{10**10 + number}\n")


def perfmon(dice):
    """A log of PerfMon: 24 disks with 16 counters each, a row a time."""
    counters = """Disk Reads/sec|Disk Writes/sec|Disk Transfers/sec|Disk Read Bytes/sec
Disk Write Bytes/sec|Disk Bytes/sec|Avg. Disk sec/Read|Avg. Disk sec/Write|Avg. Disk sec/Transfer
Avg. Disk Bytes/Read|Avg. Disk Bytes/Write|Avg. Disk Bytes/Transfer|Current Disk Queue Length
Avg. Disk Queue Length|% Disk Time|% Idle Time""".replace("\n", "|").split("|")
    paths = [f"\\\\DB1\\PhysicalDisk({n} {chr(67 + n)}:)\\{name}"
             for n in range(24) for name in counters]
    yield ",".join(f'"{name}"' for name in ["(PDH-CSV 4.0) (UTC)(0)"] + paths) + "\n"
    row = lambda: ",".join(f'"{dice.uniform(0, most):.6f}"' for most in
                           [9e3] * 3 + [9e7] * 3 + [0.02] * 3 + [65536] * 3 + [64] * 2 + [100] * 2)
    rows = [row() for _ in range(POOL)]
    for at in times():
        yield f'"{at:%m/%d/%Y %H:%M:%S}.{dice.randrange(1000):03}",'
        yield ",".join(dice.choice(rows) for _ in range(24)) + "\n"


def requests(dice):
    """Moments in nanoseconds, whether a request is a read, its first sector, its sectors."""
    at = 0
    while True:
        at += dice.randrange(1, 500_000)
        yield at, dice.random() < 0.7, dice.randrange(10**8) * 8, dice.choice([8, 8, 16, 128])


def blkparse(dice):
    """blkparse's own format: each request queued, issued and done."""
    for sequence, (at, is_read, sector, count) in enumerate(requests(dice)):
        op = "R" if is_read else "W"
        for step, (action, process) in enumerate([("Q", 4020), ("D", 4020), ("C", 0)]):
            now = at + step * 70_000
            yield (f"259,2 {dice.randrange(16):4} {sequence * 3 + step:8} "
                   f"{now // 10**9:5}.{now % 10**9:09} {process:5}  {action}  {op:>2} "
                   f"{sector} + {count} [java]\n")


def msr(dice):
    """The traces of MSR Cambridge."""
    zero = 128_166_372_000_000_000
    for at, is_read, sector, count in requests(dice):
        op = "Read" if is_read else "Write"
        latency = dice.randrange(500, 200_000)
        yield f"{zero + at // 100},prxy,{dice.randrange(2)},{op},{sector * 512},{count * 512},{latency}\n"


def fio_log(dice):
    """A log of fio of every single latency."""
    for at, is_read, sector, count in requests(dice):
        yield (f"{at // 10**6}, {dice.randrange(50_000, 9_000_000)}, {int(not is_read)}, "
               f"{count * 512}, {sector * 512}\n")


def pgbench(dice):
    """pgbench --aggregate-interval=1."""
    for at in times():
        count, mean = dice.randrange(1000, 9000), dice.randrange(200, 900)
        least, most = mean // 3, mean * dice.randrange(2, 30)
        yield (f"{int(at.timestamp())} {count} {count * mean} {count * mean * mean} "
               f"{least} {most}\n")


KINDS = {
    "iostat": ("iostat -xt", "iostat.txt", iostat),
    "file-stats": ("sys.dm_io_virtual_file_stats, CSV", "files.csv", file_stats),
    "vmstat": ("vmstat, stamped", "vmstat.txt", vmstat),
    "iostat-json": ("iostat -o JSON", "iostat.json", iostat_json),
    "sadf-d": ("sadf -d", "sadf.csv", sadf_d),
    "sar": ("sar -d", "sar.txt", sar),
    "perfmon": ("PerfMon, CSV of 384 counters", "perfmon.csv", perfmon),
    "blkparse": ("blkparse", "blkparse.txt", blkparse),
    "msr": ("MSR Cambridge", "prxy_0.csv", msr),
    "fio-log": ("fio, log of latencies", "job_lat.1.log", fio_log),
    "pgbench": ("pgbench, aggregate log", "pgbench_log.1", pgbench),
}
ENDS = {"iostat-json": "\t\t\t\t}\n\t\t\t]\n\t\t}\n\t]\n}}\n"}


def make(kind, path, size):
    """Writes an input of that size; lines are whole."""
    written = 0
    with open(path, "w", encoding="utf-8") as out:
        for text in KINDS[kind][2](random.Random(kind)):
            # What belongs together is written to its end.
            if written >= size and (kind not in ENDS or text.startswith("\t\t\t\t},")):
                break
            out.write(text)
            written += len(text)
        out.write(ENDS.get(kind, ""))


def run(weir, path, out):
    """Seconds by the clock, seconds of the processor, bytes of memory at most."""
    began = time.monotonic()
    child = subprocess.Popen([weir, "observe", "import", path, "--out", out],
                             stdout=subprocess.DEVNULL, stderr=subprocess.PIPE)
    told = child.stderr.read()
    _, status, usage = os.wait4(child.pid, 0)
    seconds = time.monotonic() - began
    child.returncode = os.waitstatus_to_exitcode(status)
    if child.returncode != 0:
        sys.exit(f"{path}: {told.decode()}")
    return seconds, usage.ru_utime + usage.ru_stime, usage.ru_maxrss * 1024


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n\n")[0])
    parser.add_argument("weir", help="a release build")
    parser.add_argument("--megabytes", type=int, default=150, help="of each input")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--only", choices=KINDS, action="append")
    parser.add_argument("--keep", metavar="FOLDER", help="keep inputs there, and take those that are")
    args = parser.parse_args()
    print("| input | MB | MB/s, median | least | most | MB per s of processor | memory, MiB "
          "| observation, MB |\n|---|---|---|---|---|---|---|---|")
    with tempfile.TemporaryDirectory() as temporary:
        for kind in args.only or KINDS:
            title, name, _ = KINDS[kind]
            path = os.path.join(args.keep or temporary, name)
            if not os.path.exists(path):
                make(kind, path, args.megabytes * 10**6)
            out = os.path.join(temporary, "out.weirobs")
            size = os.path.getsize(path) / 1e6
            rounds = [run(args.weir, path, out) for _ in range(args.rounds)]
            rate = sorted(size / seconds for seconds, _, _ in rounds)
            processor = statistics.median(size / cpu for _, cpu, _ in rounds)
            memory = max(memory for _, _, memory in rounds) / 2**20
            print(f"| {title} | {size:.0f} | {statistics.median(rate):.0f} | {rate[0]:.0f} "
                  f"| {rate[-1]:.0f} | {processor:.0f} | {memory:.0f} "
                  f"| {os.path.getsize(out) / 1e6:.1f} |", flush=True)
            os.remove(out)
            if not args.keep:
                os.remove(path)


if __name__ == "__main__":
    main()
