"""The examples, with fewer simulations than they have by default.

WEIR_TEST_SIMULATIONS and WEIR_TEST_SERVERS are the numbers; 10000 and 2000 are those of the documents.
"""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import nbformat
import pytest
from conftest import EXAMPLES, missing
from nbclient import NotebookClient

import weir

SIMULATIONS = os.environ.get("WEIR_TEST_SIMULATIONS", "600")
SERVERS = os.environ.get("WEIR_TEST_SERVERS", "60")


def run(script: str, *arguments: str | Path) -> tuple[str, str]:
    command = [sys.executable, EXAMPLES / script, *arguments]
    # Nothing is sent to the makers of Ray.
    env = {**os.environ, "RAY_USAGE_STATS_ENABLED": "0"}
    done = subprocess.run(
        command, capture_output=True, text=True, check=False, timeout=3600, env=env
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout, done.stderr


def test_a_sweep_on_ray_survives_the_loss_of_a_worker(tmp_path: Path) -> None:
    number = ["--simulations", SIMULATIONS, "--out"]
    run("ray_sweep.py", *number, tmp_path / "alone.csv", "--without-ray")
    _, said = run("ray_sweep.py", *number, tmp_path / "ray.csv", "--kill-worker")
    assert "killed one of two workers" in said
    alone, ray = ((tmp_path / name).read_bytes() for name in ("alone.csv", "ray.csv"))
    assert alone == ray
    plain = tmp_path / "plain"
    plain.touch()
    assert (tmp_path / "ray.csv").stat().st_mode == plain.stat().st_mode
    plain.unlink()
    assert alone.count(b"\n") == int(SIMULATIONS) + 1
    assert len(list(tmp_path.iterdir())) == 2


def summary(tmp_path: Path, *arguments: str | Path) -> tuple[str, str]:
    """Returns the summary of a fleet, and what was said. Ray writes to the standard output, too."""
    out = tmp_path / "summary.json"
    _, said = run("fleet.py", *arguments, "--out", out)
    return out.read_text(), said


def test_a_fleet_survives_the_loss_of_a_worker_on_each_engine(tmp_path: Path) -> None:
    fleet = tmp_path / "fleet"
    alone, _ = summary(tmp_path, fleet, "--make", SERVERS, "--on", "here")
    for engine in ("dask", "ray"):
        own, said = summary(tmp_path, fleet, "--on", engine, "--kill-worker")
        assert "killed one of two workers" in said
        assert own == alone, engine
    answer = json.loads(alone)
    assert answer["servers"] == int(SERVERS)
    assert answer["verdicts"]["throttled"] == int(SERVERS) // 3


# The files of its workers are for their owner only, which shows who made them.
DASK = """
import os
os.umask(0o077)
from dask.distributed import LocalCluster
if __name__ == "__main__":
    cluster = LocalCluster(n_workers=1, threads_per_worker=1, dashboard_address=None)
    print(cluster.scheduler_address, flush=True)
    input()
"""
RAY = """
import os
os.umask(0o077)
from ray.cluster_utils import Cluster
cluster = Cluster(initialize_head=True, head_node_args={"num_cpus": 1})
print(cluster.address, flush=True)
input()
cluster.shutdown()
"""


@pytest.mark.parametrize(("engine", "script"), [("dask", DASK), ("ray", RAY)])
def test_a_cluster_that_runs_already_is_used_by_its_address(
    engine: str, script: str, tmp_path: Path
) -> None:
    fleet = tmp_path / "fleet"
    alone, _ = summary(tmp_path, fleet, "--make", "6", "--on", "here")
    assert {path.stat().st_mode & 0o044 for path in fleet.iterdir()} == {0o044}
    # Its workers are in another folder than the script.
    other = tmp_path / "other"
    other.mkdir()
    (other / "cluster.py").write_text(script)
    command = [sys.executable, "cluster.py"]
    env = {**os.environ, "RAY_USAGE_STATS_ENABLED": "0"}
    pipes: dict[str, Any] = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "text": True}
    with subprocess.Popen(command, cwd=other, env=env, **pipes) as cluster:
        address = cluster.stdout.readline().strip()
        try:
            assert address, "the cluster did not start"
            options = ["--on", engine, "--address", address]
            made = tmp_path / "made"
            relative = Path(os.path.relpath(made))
            assert summary(tmp_path, relative, "--make", "6", *options)[0] == alone
            assert {path.stat().st_mode & 0o077 for path in made.iterdir()} == {0}
        finally:
            cluster.communicate("\n", timeout=60)


def test_the_notebook_runs() -> None:
    path = EXAMPLES / "weir.ipynb"
    notebook = nbformat.read(path, as_version=4)
    nbformat.validate(notebook)
    client = NotebookClient(notebook, timeout=600, resources={"metadata": {"path": EXAMPLES}})
    client.execute()
    printed = [out for cell in notebook.cells for out in cell.get("outputs", ())]
    assert any(out.get("output_type") in ("stream", "execute_result") for out in printed)


def test_the_kubernetes_files_are_valid() -> None:
    files = sorted((EXAMPLES / "kubernetes").glob("*.yaml"))
    assert len(files) == 3
    validate = Path(sys.executable).with_name("kubernetes-validate")
    done = subprocess.run(
        [validate, "--strict", "--kubernetes-version", "1.34", *files],
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr


def slurm_files() -> list[Path]:
    files = sorted((EXAMPLES / "slurm").glob("*.sbatch"))
    assert len(files) == 2
    return files


def test_the_slurm_files_pass_shellcheck() -> None:
    if shutil.which("shellcheck") is None:
        missing("shellcheck")
    done = subprocess.run(
        ["shellcheck", "--shell=bash", *slurm_files()], capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stdout


@pytest.fixture
def slurm(program: Path, tmp_path: Path) -> dict[str, str]:
    """The environment of a Slurm job on this machine: srun runs the command."""
    programs = tmp_path / "bin"
    programs.mkdir()
    (programs / "srun").write_text('#!/bin/sh\nexec "$@"\n')
    (programs / "srun").chmod(0o755)
    (programs / "weir").symlink_to(program)
    return {**os.environ, "PATH": f"{programs}:{os.environ['PATH']}"}


def test_the_slurm_files_sweep_and_merge(slurm: dict[str, str], tmp_path: Path) -> None:
    (tmp_path / "layout.toml").write_text(
        'edition = "azure-now"\nhost = { size = "D8s_v3" }\n'
        '[[volume]]\nname = "data"\nsize = "512 GiB"\n'
    )
    (tmp_path / "jobs.fio").write_text(
        "[reads]\nrw=randread\nioengine=libaio\ndirect=1\nsize=1g\ntime_based\nruntime=100ms\n"
    )
    (tmp_path / "sweep.toml").write_text(
        'layout = "layout.toml"\nworkload = "jobs.fio"\n'
        '[[parameter]]\nname = "size"\nlayout = "volume.data.size"\n'
        'values = ["128 GiB", "256 GiB", "512 GiB", "1 TiB", "2 TiB"]\n'
    )
    sweep, merge = EXAMPLES / "slurm/sweep.sbatch", EXAMPLES / "slurm/merge.sbatch"

    def batch(*command: str | Path, **more: str) -> None:
        done = subprocess.run(
            ["bash", *command],
            cwd=tmp_path,
            env={**slurm, **more},
            capture_output=True,
            text=True,
            check=False,
        )
        assert done.returncode == 0, done.stdout + done.stderr

    for shard in ("1", "2", "3"):
        batch(sweep, "sweep.toml", "3", SLURM_ARRAY_TASK_ID=shard, SLURM_CPUS_PER_TASK="1")
    batch(merge, "3")
    assert (tmp_path / "results.csv").read_text().count("\n") == 6


def test_the_examples_name_the_version_of_weir() -> None:
    for name in ("sweep.yaml", "merge.yaml"):
        text = (EXAMPLES / "kubernetes" / name).read_text()
        assert f"image: weir:{weir.__version__}\n" in text
