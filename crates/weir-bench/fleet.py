#!/usr/bin/env python3
"""Times `weir diagnose --fleet` on a fleet in Parquet, and DuckDB on the same files, in turn.

    $ cargo build --release -p weir --features parquet
    $ cargo run --release -p weir-bench --features parquet --bin fleet -- 2000 FLEET --parquet
    $ python3 crates/weir-bench/fleet.py --weir target/release/weir --fleet FLEET

DuckDB computes a part of what the diagnosis does: of each file of each server the rates, the share of samples
at 90 % of the volume's limit, the mean latency and its 99th percentile. Needs duckdb.
"""

import argparse
import os
import sys
import tempfile

from diagnosis import timed

DUCK = """
import duckdb, sys
duckdb.sql("SET threads = 2")
sql = '''
WITH wide AS (
  SELECT server, entity, offset_ns,
    sum(value) FILTER (metric IN ('num_of_reads', 'num_of_writes')) AS ops,
    sum(value) FILTER (metric IN ('num_of_bytes_read', 'num_of_bytes_written')) AS bytes,
    sum(value) FILTER (metric IN ('io_stall_read_ms', 'io_stall_write_ms')) AS ms
  FROM read_parquet('{path}/*/*/*.parquet')
  WHERE "row" = 'value' AND kind = 'file' GROUP BY server, entity, offset_ns),
rates AS (
  SELECT server, entity, ops - lag(ops) OVER w AS ops, bytes - lag(bytes) OVER w AS bytes,
    ms - lag(ms) OVER w AS ms, (offset_ns - lag(offset_ns) OVER w) / 1e9 AS s
  FROM wide WINDOW w AS (PARTITION BY server, entity ORDER BY offset_ns))
SELECT server, entity, sum(ops) / sum(s), max(ops / s), avg((ops / s >= 4500)::INT),
  avg((bytes / s >= 180e6)::INT), sum(ms) / sum(ops), quantile_cont(ms / nullif(ops, 0), 0.99)
FROM rates WHERE ops IS NOT NULL GROUP BY server, entity'''
print(len(duckdb.sql(sql.format(path=sys.argv[1])).fetchall()))
"""


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--weir", required=True)
    parser.add_argument("--fleet", required=True)
    parser.add_argument("--rounds", type=int, default=2)
    args = parser.parse_args()
    results = {"weir diagnose --fleet": [], "DuckDB": []}
    for _ in range(args.rounds):
        with tempfile.TemporaryDirectory() as folder:
            out = os.path.join(folder, "fleet.csv")
            diagnose = [args.weir, "diagnose", "--fleet", args.fleet, "--out", out]
            results["weir diagnose --fleet"].append(timed(diagnose))
        results["DuckDB"].append(timed([sys.executable, "-c", DUCK, args.fleet]))
    print("| | seconds (least to most) | processor s | peak MiB |")
    print("|---|--:|--:|--:|")
    for name, runs in results.items():
        seconds = sorted(run[0] for run in runs)
        processor = max(run[2] for run in runs)
        peak = max(run[1] for run in runs)
        print(f"| {name} | {seconds[0]:.1f} to {seconds[-1]:.1f} | {processor:.0f} | {peak:.0f} |")


if __name__ == "__main__":
    main()
