"""Work without the interpreter's lock, until Ctrl-C."""

from __future__ import annotations

import _thread
import os
import signal
import subprocess
import sys
import threading
from pathlib import Path

import pytest
from conftest import FIO, LAYOUT

import weir

LONG = """
import signal, sys, weir
from conftest import FIO, LAYOUT
layout, jobs = weir.Layout(LAYOUT), weir.Workload.from_fio(FIO)
try:
    print("ready", flush=True)
    weir.simulate(layout, jobs, runtime="1000h", observe=sys.argv[1])
except KeyboardInterrupt:
    print("interrupted", flush=True)
"""


def test_ctrl_c_ends_a_simulation(tmp_path: Path) -> None:
    """The run would take hours, and nothing of it is kept."""
    observed = tmp_path / "run.weirobs"
    weir.simulate(LAYOUT, weir.Workload.from_fio(FIO), runtime="1s", observe=observed)
    before = observed.read_bytes()
    child = subprocess.Popen(
        [sys.executable, "-c", LONG, observed],
        stdout=subprocess.PIPE,
        text=True,
        env={**os.environ, "PYTHONPATH": str(Path(__file__).parent)},
    )
    try:
        assert child.stdout is not None
        assert child.stdout.readline() == "ready\n"
        child.send_signal(signal.SIGINT)
        out, _ = child.communicate(timeout=60)
        assert out == "interrupted\n"
        assert child.returncode == 0
    finally:
        child.kill()
        child.wait()
    assert observed.read_bytes() == before
    assert [path.name for path in tmp_path.iterdir()] == ["run.weirobs"]


def test_other_threads_run_meanwhile(layout: weir.Layout, jobs: weir.Workload) -> None:
    """The run takes hours unless another thread gets the lock and ends it."""
    other = threading.Timer(0.1, _thread.interrupt_main)
    other.start()
    with pytest.raises(KeyboardInterrupt):
        weir.simulate(layout, jobs, runtime="1000h")
    other.join()


def test_equal_seeds_give_equal_results(layout: weir.Layout, jobs: weir.Workload) -> None:
    results = [weir.simulate(layout, jobs, seed=seed) for seed in (1, 1, 2)]
    assert results[0] == results[1]
    assert results[0]["trace_hash"] != results[2]["trace_hash"]
