"""Inputs of the tests: labs of the repository, and the command line to compare with."""

from __future__ import annotations

import json
import os
import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import Any, NoReturn

import pytest

import weir

ROOT = Path(__file__).resolve().parents[3]
LABS = ROOT / "labs"
EXAMPLES = ROOT / "examples"

FIO = """
[mixed]
rw=randrw
ioengine=libaio
bs=8k
size=1g
direct=1
iodepth=32
time_based
runtime=5
"""

LAYOUT: dict[str, Any] = {
    "edition": "azure-now",
    "host": {"size": "D8s_v3"},
    "volume": [{"name": "data", "size": "540 GiB"}],
}


# A report of iostat whose last line is cut.
CUT_IOSTAT = """Linux 6.1.0 (db1) \t11/22/2026 \t_x86_64_\t(4 CPU)

11/22/2026 10:00:00 AM
Device            r/s     rkB/s     w/s     wkB/s
sda             10.00     80.00    0.00      0.00

11/22/2026 10:00:05 AM
Device            r/s     rkB/s     w/s     wkB/s
sda             20.00    160.00    0.00      0.00

11/22/2026 10:00:10 AM
Device            r/s     rkB/s     w/s     wkB/s
sda             20.00    160.00    0.00      0.00
sdb             20.00"""


def missing(what: str) -> NoReturn:
    """Skip a test that needs something, or fail it in CI."""
    if os.environ.get("CI") == "true":
        pytest.fail(f"needs {what}")
    pytest.skip(f"skipped: needs {what}")


@pytest.fixture
def layout() -> weir.Layout:
    return weir.Layout(LAYOUT)


@pytest.fixture
def jobs() -> weir.Workload:
    return weir.Workload.from_fio(FIO)


@pytest.fixture
def trace(tmp_path: Path) -> Path:
    """A trace of MSR Cambridge: a write each 10 ms for 10 s."""
    rows = [
        f"{128166372000000000 + n * 100_000},web,0,Write,{n * 4096},4096,20000\n" for n in range(1000)
    ]
    path = tmp_path / "web.csv"
    path.write_text("".join(rows))
    return path


@pytest.fixture
def observed(tmp_path: Path, layout: weir.Layout, jobs: weir.Workload) -> Path:
    """An observation of a throttled run."""
    path = tmp_path / "run.weirobs"
    weir.simulate(layout, jobs, every="100ms", observe=path)
    return path


@pytest.fixture
def program() -> Path:
    """Returns the weir to compare with."""
    path = os.environ.get("WEIR_TEST_BINARY")
    if not path:
        missing("WEIR_TEST_BINARY, the path of weir")
    return Path(path).resolve()


@pytest.fixture
def command_line(program: Path) -> Callable[..., Any]:
    """Runs a verb of the command line, and returns its result in JSON."""

    def run(*arguments: str | Path) -> Any:
        command = [program, *arguments, "--output", "json"]
        done = subprocess.run(command, capture_output=True, text=True, cwd=ROOT, check=False)
        assert done.returncode in (0, 1), done.stderr
        return json.loads(done.stdout)

    return run


@pytest.fixture
def message_of_command_line(program: Path) -> Callable[..., str]:
    """Runs a verb that fails, and returns its message."""

    def run(*arguments: str | Path) -> str:
        command = [program, *arguments]
        done = subprocess.run(command, capture_output=True, text=True, check=False)
        assert done.returncode == 2, done.stderr
        return done.stderr.strip()

    return run
