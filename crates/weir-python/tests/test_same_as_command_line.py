"""The package and the command line give the same answers, under the same names."""

from __future__ import annotations

from collections.abc import Callable
from datetime import timedelta
from pathlib import Path
from typing import Any, get_type_hints

import pytest
from conftest import FIO, LABS, LAYOUT

import weir
from weir import results

Run = Callable[..., Any]


def test_a_simulation_of_jobs(command_line: Run) -> None:
    layout = LABS / "ds14-benchmark/layout.toml"
    jobs = LABS / "ds14-benchmark/fiowrite.ini"
    options = {"runtime": "2s", "seed": 7, "every": "1s"}
    flags = [word for key, own in options.items() for word in (f"--{key}", str(own))]
    own = weir.simulate(layout, jobs, runtime="2s", seed=7, every="1s")
    assert own == command_line("sim", layout, jobs, *flags)
    assert own["jobs"][0]["write"]["iops"] > 10_000
    assert set(own) <= set(get_type_hints(results.SimReport))
    assert set(own["jobs"][0]) == set(get_type_hints(results.JobReport))
    assert set(own["jobs"][0]["read"]) == set(get_type_hints(results.OpReport))
    assert set(own["jobs"][0]["read"]["latency"]) == set(get_type_hints(results.LatencyReport))


def test_a_simulation_of_a_database(command_line: Run, tmp_path: Path) -> None:
    layout = tmp_path / "layout.toml"
    layout.write_text("""
        edition = "azure-mi-2018"
        host = { managed_instance = "gp", vcores = 8, tiers = "mi-2020" }
        file = [
          { name = "data-1", role = "data", size = "32 GiB" },
          { name = "data-2", role = "data", size = "32 GiB" },
          { name = "data-3", role = "data", size = "32 GiB" },
          { name = "log", role = "log", size = "32 GiB" },
        ]
    """)
    database = LABS / "mi-file-size/oltp.toml"
    own = weir.simulate(layout, database, runtime="3s")
    assert own == command_line("sim", layout, database, "--runtime", "3s")
    assert len(own["databases"]) == 1
    assert set(own) <= set(get_type_hints(results.SimReport))


def test_a_replay(command_line: Run, trace: Path, tmp_path: Path) -> None:
    layout = tmp_path / "layout.toml"
    layout.write_text(weir.Layout(LAYOUT).text)
    flags = ["--map", "web/0=data"]
    own = weir.simulate(layout, trace, map={"web/0": "data"})
    assert own == command_line("sim", layout, trace, *flags)
    assert own["requests"] == 1000
    assert set(own) <= set(get_type_hints(results.SimReport))
    part = weir.Trace(
        trace, pace="2x", window=("1s", timedelta(seconds=5)), sample="1/2", devices=["web/0"]
    )
    flags += ["--pace", "2x", "--from", "1s", "--to", "5s", "--sample", "1/2", "--device", "web/0"]
    own = weir.simulate(layout, part, map={"web/0": "data"}, every="1s")
    assert own == command_line("sim", layout, trace, *flags, "--every", "1s")
    closed = weir.Trace(trace, pace="closed", depth=4, wrap=True)
    own = weir.simulate(layout, closed, map={"web/0": "data"})
    flags = ["--map", "web/0=data", "--pace", "closed", "--depth", "4", "--wrap"]
    assert own == command_line("sim", layout, trace, *flags)


def test_options_of_jobs(command_line: Run, tmp_path: Path) -> None:
    layout, jobs = tmp_path / "layout.toml", tmp_path / "jobs.fio"
    volumes = [
        {"name": "data", "size": "540 GiB", "cache": "read-only"},
        {"name": "log", "size": "540 GiB"},
    ]
    layout.write_text(weir.Layout({**LAYOUT, "volume": volumes}).text)
    jobs.write_text(FIO.replace("runtime=5", "runtime=5\nfilename=/mnt/sql"))
    flags = ["--map", "/mnt/sql=data", "--warm", "data", "--crash", "host@2s"]
    own = weir.simulate(
        layout, jobs, map={"/mnt/sql": "data"}, warm=["data"], crash=("host", "2s")
    )
    assert own == command_line("sim", layout, jobs, *flags)
    assert own["jobs"][0]["hit_share"]


def test_a_diagnosis(command_line: Run, observed: Path) -> None:
    own = weir.diagnose(observed)
    assert own == command_line("diagnose", observed)
    assert own["verdict"] == "throttled"
    assert set(own) == set(get_type_hints(results.DiagnosisReport))
    assert set(own["findings"][0]) == set(get_type_hints(results.Finding))


def test_a_diagnosis_of_a_file_of_another_tool(command_line: Run, tmp_path: Path) -> None:
    path = tmp_path / "iostat.txt"
    head = "Linux 6.1.0 (db1) \t11/22/2026 \t_x86_64_\t(4 CPU)\n"
    rows = [
        f"\n11/22/2026 10:00:{second:02d} AM\n"
        "Device            r/s     rkB/s   rrqm/s  %rrqm r_await rareq-sz     w/s     wkB/s   wrqm/s"
        "  %wrqm w_await wareq-sz     d/s     dkB/s   drqm/s  %drqm d_await dareq-sz     f/s f_await"
        "  aqu-sz  %util\n"
        "sdc           5000.00  40000.00     0.00   0.00   12.00     8.00    0.00      0.00     0.00"
        "   0.00    0.00     0.00    0.00      0.00     0.00   0.00    0.00     0.00    0.00    0.00"
        "   60.00 100.00\n"
        for second in range(0, 30, 5)
    ]
    path.write_text(head + "".join(rows))
    layout = tmp_path / "layout.toml"
    layout.write_text(weir.Layout(LAYOUT).text)
    own = weir.diagnose(path, layout=layout, map={"sdc": "data"})
    assert own == command_line("diagnose", path, "--layout", layout, "--map", "sdc=data")


def test_a_plan(command_line: Run) -> None:
    need = {"edition": "azure-premium-2015", "data": {"size": "4TiB", "iops": 16000}}
    own = weir.plan(need)
    flags = ["--edition", "azure-premium-2015", "--iops", "16000", "--size", "4TiB"]
    assert own == command_line("plan", *flags)
    assert own["plan"] is not None
    assert set(own) == set(get_type_hints(results.PlanReport))
    assert set(own["plan"]) == set(get_type_hints(results.PlanChoice))


def test_a_plan_within_a_budget_that_extends_a_layout(command_line: Run, tmp_path: Path) -> None:
    kept, need = tmp_path / "kept.toml", tmp_path / "need.toml"
    files = [{"name": "sales.mdf", "on": "data", "role": "data", "size": "400 GiB"}]
    kept.write_text(weir.Layout({**LAYOUT, "file": files}).text)
    need.write_text('keep = "kept.toml"\n[data]\nsize = "900 GiB"\niops = 6000\n')
    assert weir.plan(need) == command_line("plan", "--need", need)
    own = weir.plan({"data": {"size": "1TiB", "iops": 100}}, budget=500)
    flags = ["--size", "1TiB", "--iops", "100", "--budget", "500"]
    assert own == command_line("plan", *flags)


def test_a_plan_for_an_observed_load(
    command_line: Run, observed: Path, tmp_path: Path
) -> None:
    own = weir.plan(observation=observed)
    assert own == command_line("plan", "--from", observed)
    assert own["plan"] is not None
    assert any("an estimate of its demand" in note for note in own["notes"])
    need = {"data": {"size": "2TiB"}}
    file = tmp_path / "need.toml"
    file.write_text('[data]\nsize = "2TiB"\n')
    measure = {"percentile": 99.9, "growth": "30%", "roles": {"data": "data"}, "as_observed": True}
    own = weir.plan(need, observation=weir.Observation(observed), **measure)
    flags = ["--percentile", "99.9", "--growth", "30%", "--role", "data=data", "--as-observed"]
    assert own == command_line("plan", "--need", file, "--from", observed, *flags)
    assert any("left out" in note for note in own["notes"])


def test_a_comparison_of_layouts(command_line: Run, tmp_path: Path) -> None:
    jobs, one, other = tmp_path / "jobs.fio", tmp_path / "p30.toml", tmp_path / "p40.toml"
    jobs.write_text(FIO)
    one.write_text(weir.Layout(LAYOUT).text)
    larger = {**LAYOUT, "volume": [{"name": "data", "size": "2 TiB"}]}
    other.write_text(weir.Layout(larger).text)
    own = weir.compare(one, other, workload=jobs, seeds=3, runtime="1s", tolerance=0.1)
    flags = ["--workload", jobs, "--seeds", "3", "--runtime", "1s", "--tolerance", "10%"]
    assert own == command_line("compare", one, other, *flags)
    assert set(own) == set(get_type_hints(results.ComparisonReport))
    pair = own["comparisons"][0]
    assert set(pair) == set(get_type_hints(results.PairReport))
    assert set(pair["metrics"][0]) == set(get_type_hints(results.MetricReport))


def test_a_comparison_of_observations(command_line: Run, observed: Path, tmp_path: Path) -> None:
    other = tmp_path / "other.weirobs"
    weir.simulate(LAYOUT, weir.Workload.from_fio(FIO), seed=2, every="100ms", observe=other)
    own = weir.compare(observed, other)
    assert own == command_line("compare", observed, other)


@pytest.mark.parametrize("verb", ["tiers", "hosts"])
def test_the_catalog(command_line: Run, verb: str) -> None:
    for edition in ("azure-now", "azure-premium-2015", "aws", "azure-mi-2018"):
        own = getattr(weir.catalog, verb)(edition)
        other = command_line("catalog", verb, edition)
        assert own == (other if isinstance(other, list) else other.get(verb, []))


def test_the_editions_and_the_figures(command_line: Run) -> None:
    assert weir.catalog.editions() == command_line("catalog", "editions")
    for name in ("DS14", "P30", "premium-ssd", "gp3"):
        assert weir.catalog.show(name) == command_line("catalog", "show", name)["figures"]
