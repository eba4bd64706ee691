"""Observations as Arrow tables, which other libraries read in place."""

from __future__ import annotations

from pathlib import Path

import pandas
import polars
import pyarrow
import pytest

import weir


def addresses(column: pyarrow.ChunkedArray) -> list[int]:
    # The first buffer is the bitmap of missing values.
    return [chunk.buffers()[1].address for chunk in column.chunks]


def test_pyarrow_reads_the_memory_of_weir(observed: Path) -> None:
    observation = weir.Observation(observed)
    table = pyarrow.table(observation)
    assert table.column_names == observation.columns
    assert table.num_rows == len(observation) >= 51
    for name in table.column_names:
        assert addresses(table[name]) == [observation.address(name)], name


def test_polars_reads_the_memory_of_weir(observed: Path) -> None:
    observation = weir.Observation(observed)
    frame = polars.DataFrame(observation)
    assert frame.columns == observation.columns
    for name in frame.columns:
        own = frame[name].to_arrow()
        assert addresses(pyarrow.chunked_array([own])) == [observation.address(name)], name


def test_pandas_reads_the_memory_of_weir(observed: Path) -> None:
    observation = weir.Observation(observed)
    table = pyarrow.table(observation)
    frame = table.to_pandas(types_mapper=pandas.ArrowDtype)
    for name in observation.columns:
        column = pyarrow.chunked_array(frame[name].array.__arrow_array__())
        assert addresses(column) == [observation.address(name)], name


def test_the_memory_outlives_the_observation(observed: Path) -> None:
    observation = weir.Observation(observed)
    name = next(own for own in observation.columns if own.endswith("/reads"))
    expected = pyarrow.table(observation)[name].to_pylist()
    table = pyarrow.table(weir.Observation(observed))
    del observation
    assert table[name].to_pylist() == expected
    assert expected[-1] > expected[0]


def test_a_column_says_what_it_is(observed: Path) -> None:
    observation = weir.Observation(observed)
    schema = pyarrow.schema(observation)
    name = next(own for own in observation.columns if own.endswith("volume:data/reads"))
    field = schema.field(name)
    assert field.type == pyarrow.int64()
    about = {key.decode(): own.decode() for key, own in field.metadata.items()}
    assert about == {
        "weir.kind": "volume",
        "weir.name": "data",
        "weir.metric": "reads",
        "weir.unit": "count",
        "weir.counting": "cumulative",
        "weir.scale": "0",
    }
    # A simulation has no date.
    assert schema.field("time").type == pyarrow.duration("ns")


def test_a_missing_value_is_null(tmp_path: Path) -> None:
    path = tmp_path / "iostat.txt"
    head = "Linux 6.1.0 (db1) \t11/22/2026 \t_x86_64_\t(4 CPU)\n"
    columns = "Device            r/s     rkB/s     w/s     wkB/s\n"
    path.write_text(
        head
        + f"\n11/22/2026 10:00:00 AM\n{columns}sda 1.00 8.00 0.00 0.00\nsdb 2.00 16.00 0.00 0.00\n"
        + f"\n11/22/2026 10:00:05 AM\n{columns}sda 1.00 8.00 0.00 0.00\n"
        + f"\n11/22/2026 10:00:10 AM\n{columns}sda 1.00 8.00 0.00 0.00\nsdb 2.00 16.00 0.00 0.00\n"
    )
    observation = weir.Observation(path)
    table = pyarrow.table(observation)
    of_a, of_b = (
        next(own for own in observation.columns if own.endswith(f":{disk}/read_bytes_per_s"))
        for disk in ("sda", "sdb")
    )
    assert None not in table[of_a].to_pylist()[1:]
    assert table[of_b].to_pylist()[-2] is None
    assert table[of_b].to_pylist()[-1] is not None
    assert table["time"].type == pyarrow.timestamp("ns", "UTC")


def test_an_unknown_column_is_refused(observed: Path) -> None:
    with pytest.raises(weir.InputError, match="there is no column"):
        weir.Observation(observed).address("nothing")
