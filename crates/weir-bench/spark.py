#!/usr/bin/env python3
"""Checks that Spark reads the tables of Weir as they are, and that Weir reads those of Spark.

    $ cargo build --release -p weir --features parquet
    $ python3 crates/weir-bench/spark.py --weir target/release/weir

Needs pyspark (4 or later) and Java. It runs Spark in this process, without a cluster.
"""

import argparse
import subprocess
import tempfile
from pathlib import Path

from pyspark.sql import SparkSession, functions

LAYOUT = """edition = "azure-now"
[host]
size = "D16s_v5"
[[volume]]
name = "data"
tier = "P30"
"""

JOB = """[global]
ioengine=libaio
direct=1
time_based
runtime=20
[reads]
filename=/dev/data
rw=randread
bs=8k
iodepth=64
"""

SWEEP = """layout = "layout.toml"
workload = "job.fio"

[[parameter]]
name = "depth"
workload = "reads.iodepth"
values = [1, 8, 64]
"""

TYPES = {
    "time": "timestamp",
    "offset_ns": "bigint",
    "kind": "string",
    "name": "string",
    "parent": "string",
    "metric": "string",
    "unit": "string",
    "counting": "string",
    "row": "string",
    "entity": "bigint",
    "series": "bigint",
    "key": "string",
    "text": "string",
    "raw": "bigint",
    "value": "double",
}


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--weir", required=True)
    args = parser.parse_args()
    weir = Path(args.weir).resolve()
    with tempfile.TemporaryDirectory() as place:
        folder = Path(place)

        def run(*words):
            done = subprocess.run([weir, *words], cwd=folder, capture_output=True, text=True, check=False)
            if done.returncode != 0:
                raise SystemExit(f"weir {' '.join(words)}: {done.stderr}")
            return done.stdout

        (folder / "layout.toml").write_text(LAYOUT)
        (folder / "job.fio").write_text(JOB)
        (folder / "sweep.toml").write_text(SWEEP)
        for seed in ("1", "2"):
            run("sim", "layout.toml", "job.fio", "--seed", seed, "--observe", f"db{seed}.weirobs")
        spark = SparkSession.builder.master("local[2]").config("spark.ui.enabled", "false").getOrCreate()
        spark.sparkContext.setLogLevel("ERROR")
        print(f"Spark {spark.version}")

        run("observe", "export", "db1.weirobs", "--parquet", "one.parquet")
        one = spark.read.parquet(str(folder / "one.parquet"))
        assert dict(one.dtypes) == TYPES, one.dtypes
        values = one.where("row = 'value'")
        reads = values.where("metric = 'num_of_reads' or metric = 'reads'")
        print(f"one table: {one.count()} rows, {reads.count()} values of reads")
        assert reads.count() > 0 and values.where("value is null or series is null").count() == 0

        run("observe", "export", "db1.weirobs", "db2.weirobs", "--parquet", "fleet/")
        fleet = spark.read.parquet(str(folder / "fleet"))
        assert {"server", "day"} <= set(fleet.columns), fleet.columns
        rows = {row["server"]: row["rows"] for row in
                fleet.groupBy("server").agg(functions.count("*").alias("rows")).collect()}
        print(f"a fleet: {rows}")
        assert rows["db1"] == one.count() and set(rows) == {"db1", "db2"}

        # Spark writes times as INT96 by default. Weir does not need them.
        one.coalesce(1).write.parquet(str(folder / "again"))
        (part,) = (folder / "again").glob("*.parquet")
        run("observe", "import", "--parquet", str(part), "--out", "again.weirobs")
        shown = [run("observe", "show", name, "--output", "csv") for name in ("db1.weirobs", "again.weirobs")]
        assert shown[0] == shown[1], "the observation has changed"
        print("a table of Spark is the same observation")

        run("sweep", "sweep.toml", "--out", "sweep.parquet")
        sweep = spark.read.parquet(str(folder / "sweep.parquet"))
        assert sweep.count() == 3, sweep.count()
        print(f"a sweep: {sweep.count()} rows, {len(sweep.columns)} columns")
        spark.stop()


main()
