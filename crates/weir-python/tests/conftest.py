"""Inputs of the tests: labs of the repository, and the command line to compare with."""

from __future__ import annotations

import json
import os
import subprocess
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

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


@pytest.fixture
def layout() -> weir.Layout:
    return weir.Layout(LAYOUT)


@pytest.fixture
def jobs() -> weir.Workload:
    return weir.Workload.from_fio(FIO)


@pytest.fixture
def observed(tmp_path: Path, layout: weir.Layout, jobs: weir.Workload) -> Path:
    """An observation of a throttled run."""
    path = tmp_path / "run.weirobs"
    weir.simulate(layout, jobs, every="100ms", observe=path)
    return path


@pytest.fixture
def command_line() -> Callable[..., Any]:
    """Runs a verb of the command line, and returns its result in JSON."""
    program = os.environ.get("WEIR_TEST_BINARY")
    if program is None:
        if os.environ.get("CI") == "true":
            pytest.fail("needs WEIR_TEST_BINARY, the path of weir")
        pytest.skip("skipped: needs WEIR_TEST_BINARY, the path of weir")

    def run(*arguments: str | Path) -> Any:
        command = [program, *arguments, "--output", "json"]
        done = subprocess.run(command, capture_output=True, text=True, cwd=ROOT, check=False)
        assert done.returncode in (0, 1), done.stderr
        return json.loads(done.stdout)

    return run


@pytest.fixture
def message_of_command_line() -> Callable[..., str]:
    """Runs a verb that fails, and returns its message."""
    program = os.environ.get("WEIR_TEST_BINARY")
    if program is None:
        if os.environ.get("CI") == "true":
            pytest.fail("needs WEIR_TEST_BINARY, the path of weir")
        pytest.skip("skipped: needs WEIR_TEST_BINARY, the path of weir")

    def run(*arguments: str | Path) -> str:
        command = [program, *arguments]
        done = subprocess.run(command, capture_output=True, text=True, check=False)
        assert done.returncode == 2, done.stderr
        return done.stderr.strip()

    return run
