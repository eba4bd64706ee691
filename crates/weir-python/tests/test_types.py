"""Types: the package and its examples pass mypy, and its stubs say what the native module has."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

from conftest import EXAMPLES

PACKAGE = Path(__file__).resolve().parents[1]


def run(*command: str | Path) -> None:
    done = subprocess.run(
        [sys.executable, "-m", *command],
        cwd=PACKAGE,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr


def test_the_package_is_typed() -> None:
    # The installed package is what users check against; py.typed lets mypy read it.
    run("mypy", "--strict", "--cache-dir", os.devnull, "-p", "weir")


def test_the_examples_are_typed() -> None:
    scripts = sorted(EXAMPLES.glob("*.py"))
    assert len(scripts) == 2
    # Neither Ray nor Dask has types for all that the examples call.
    flags = ["--strict", "--allow-untyped-calls", "--ignore-missing-imports"]
    for script in scripts:
        run("mypy", *flags, "--cache-dir", os.devnull, script)


def test_the_stubs_say_what_there_is() -> None:
    run("mypy.stubtest", "weir", "--ignore-missing-stub")
