"""Tables of `weir observe export`, which other libraries read as they are."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pandas
import polars
import pyarrow.parquet
import pytest
from conftest import CUT_IOSTAT, missing


@pytest.fixture
def table(program: Path, tmp_path: Path) -> Path:
    """The table of a report of iostat, which has a date."""
    (tmp_path / "iostat.txt").write_text(CUT_IOSTAT)

    def run(*words: str) -> str:
        command = [program, "observe", *words]
        done = subprocess.run(command, capture_output=True, text=True, cwd=tmp_path, check=False)
        if "--features parquet" in done.stderr:
            missing("weir with the feature parquet")
        assert done.returncode == 0, done.stderr
        return done.stdout

    run("import", "iostat.txt", "--out", "run.weirobs")
    run("export", "run.weirobs", "--parquet", "run.parquet")
    return tmp_path / "run.parquet"


def test_pandas_reads_a_table(table: Path) -> None:
    frame = pandas.read_parquet(table, dtype_backend="pyarrow")
    values = frame[(frame["row"] == "value") & (frame["name"] == "sda")]
    times = values["time"].drop_duplicates().sort_values()
    assert [str(time) for time in times] == ["2026-11-22 10:00:05+00:00", "2026-11-22 10:00:10+00:00"]
    assert values["value"].notna().all() and (values["offset_ns"].diff().dropna() >= 0).all()


def test_polars_reads_a_table(table: Path) -> None:
    frame = polars.read_parquet(table)
    assert frame.schema["time"] == polars.Datetime("us", "UTC")
    assert frame.schema["offset_ns"] == polars.Int64 and frame.schema["value"] == polars.Float64
    own = pandas.read_parquet(table, dtype_backend="pyarrow")
    assert frame["value"].sum() == own["value"].sum() > 0.0
    assert frame.filter(polars.col("row") == "value").height == int((own["row"] == "value").sum())


def test_the_types_are_those_that_spark_reads(table: Path) -> None:
    """Spark refuses times in nanoseconds, and knows the other types since its first releases."""
    schema = pyarrow.parquet.ParquetFile(table).schema_arrow
    kinds = {str(field.type) for field in schema}
    assert kinds == {"timestamp[us, tz=UTC]", "int64", "double", "string"}


def test_a_table_with_the_times_of_spark_is_imported(table: Path, program: Path) -> None:
    """Spark writes INT96 unless it is told otherwise."""
    rows = pyarrow.parquet.read_table(table)
    again = table.with_name("again.parquet")
    pyarrow.parquet.write_table(rows, again, use_deprecated_int96_timestamps=True)
    assert "int96" in str(pyarrow.parquet.ParquetFile(again).schema).lower()
    command = [program, "observe", "import", "--parquet", again, "--out", again.with_suffix(".weirobs")]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
