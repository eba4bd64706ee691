#!/usr/bin/env python3
"""Times the diagnosis of a day of files at one second beside the same sums in DuckDB and pandas.

    cargo build --release -p weir && cargo build --release -p weir-diagnose --example day
    python3 crates/weir-bench/diagnosis.py --weir target/release/weir \\
        --day target/release/examples/day --files 100 --peers

Needs, with --peers, duckdb, pandas and pyarrow. The peers compute a part of what the diagnosis does: per file
and sample the rates, in how many samples they are at 90 % of the limit, the mean latency and its
99th percentile. They read Parquet, weir reads its observation; both are columns, compressed.
"""

import argparse
import os
import subprocess
import sys
import tempfile
import time

DUCK = """
import duckdb, sys
sql = '''
WITH d AS (
  SELECT file, second,
    reads + writes - lag(reads + writes) OVER w AS ops,
    read_bytes + write_bytes - lag(read_bytes + write_bytes) OVER w AS bytes,
    read_ms + write_ms - lag(read_ms + write_ms) OVER w AS ms
  FROM read_parquet('{path}') WINDOW w AS (PARTITION BY file ORDER BY second))
SELECT file, avg(ops), max(ops), sum((ops >= 450)::INT), sum((bytes >= 94371840)::INT),
  sum(ms) / sum(ops), quantile_cont(ms / nullif(ops, 0), 0.99)
FROM d WHERE ops IS NOT NULL GROUP BY file'''
duckdb.sql("SET threads = 2")
print(len(duckdb.sql(sql.format(path=sys.argv[1])).fetchall()))
"""

PANDAS = """
import pandas as pd, sys
t = pd.read_parquet(sys.argv[1]).sort_values(['file', 'second'])
g = t.groupby('file')
t['ops'] = g['reads'].diff() + g['writes'].diff()
t['bytes'] = g['read_bytes'].diff() + g['write_bytes'].diff()
t['ms'] = g['read_ms'].diff() + g['write_ms'].diff()
t = t.dropna()
t['near'] = t['ops'] >= 450
t['near_bytes'] = t['bytes'] >= 94371840
t['latency'] = t['ms'] / t['ops'].where(t['ops'] > 0)
g = t.groupby('file')
out = g.agg(mean=('ops', 'mean'), most=('ops', 'max'), near=('near', 'sum'), nb=('near_bytes', 'sum'))
out['latency'] = g['ms'].sum() / g['ops'].sum()
out['p99'] = g['latency'].quantile(0.99)
print(len(out))
"""


def timed(command):
    """Seconds and peak memory in MiB of a command, whose exit code may be 1: throttled."""
    started = time.monotonic()
    child = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    _, status, usage = os.wait4(child.pid, 0)
    seconds = time.monotonic() - started
    code = os.waitstatus_to_exitcode(status)
    if code not in (0, 1):
        sys.exit(f"{command[0]} ended with {code}")
    return seconds, usage.ru_maxrss / 1024, usage.ru_utime + usage.ru_stime


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--weir", required=True)
    parser.add_argument("--day", required=True)
    parser.add_argument("--files", type=int, default=1000)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--peers", action="store_true")
    args = parser.parse_args()
    rows = args.files * 86_400
    with tempfile.TemporaryDirectory() as folder:
        observation = os.path.join(folder, "day.weirobs")
        command = [args.day, str(args.files), observation]
        parquet = os.path.join(folder, "day.parquet")
        if args.peers:
            csv = os.path.join(folder, "day.csv")
            subprocess.run([*command, csv], check=True)
            import duckdb

            duckdb.sql(f"COPY (FROM read_csv('{csv}')) TO '{parquet}' (FORMAT parquet)")
            os.remove(csv)
        else:
            subprocess.run(command, check=True)
        diagnose = [args.weir, "diagnose", observation, "--edition", "azure-mi-2018", "-o", "json"]
        runs = {"weir diagnose": (diagnose, observation)}
        if args.peers:
            runs["DuckDB"] = ([sys.executable, "-c", DUCK, parquet], parquet)
            runs["pandas"] = ([sys.executable, "-c", PANDAS, parquet], parquet)
        results = {name: [] for name in runs}
        for _ in range(args.rounds):
            for name, (command, _) in runs.items():
                results[name].append(timed(command))
        print(f"{rows:,} rows, {args.files} files, {args.rounds} rounds in turn\n")
        print("| | seconds, median (least to most) | processor s | peak MiB | input MB |")
        print("|---|--:|--:|--:|--:|")
        for name, (_, path) in runs.items():
            all_s = sorted(run[0] for run in results[name])
            cpu = sorted(run[2] for run in results[name])[len(all_s) // 2]
            peak = max(run[1] for run in results[name])
            size = os.path.getsize(path) / 1e6
            middle = all_s[len(all_s) // 2]
            print(
                f"| {name} | {middle:.1f} ({all_s[0]:.1f} to {all_s[-1]:.1f}) | {cpu:.1f} "
                f"| {peak:.0f} | {size:.0f} |"
            )


if __name__ == "__main__":
    main()
