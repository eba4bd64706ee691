"""Bad input: the messages of the command line, and nothing half written."""

from __future__ import annotations

import pickle
from collections.abc import Callable
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
from conftest import CUT_IOSTAT, FIO, LAYOUT, ROOT

import weir


def test_errors_have_the_messages_of_the_command_line(
    message_of_command_line: Callable[..., str], tmp_path: Path
) -> None:
    layout, jobs = tmp_path / "layout.toml", tmp_path / "jobs.fio"
    good = weir.Layout(LAYOUT).text

    def check(layout_text: str, jobs_text: str) -> None:
        layout.write_text(layout_text)
        jobs.write_text(jobs_text)
        with pytest.raises(weir.InputError) as raised:
            weir.simulate(layout, jobs)
        assert str(raised.value) in message_of_command_line("sim", layout, jobs)

    check("edition = 'nowhere'", FIO)
    check("[[volume]\n", FIO)
    check(good.replace("D8s_v3", "D8s_v33"), FIO)
    check(good, "[reads]\nrw=sideways\n")
    check(good, FIO + "filename=nothing\n")
    layout.unlink()
    with pytest.raises(weir.InputError) as raised:
        weir.Layout(layout)
    assert str(raised.value) in message_of_command_line("sim", layout, jobs)
    with pytest.raises(weir.InputError) as raised:
        weir.catalog.tiers("azure-nwo")
    assert str(raised.value) in message_of_command_line("catalog", "tiers", "azure-nwo")


@pytest.mark.parametrize(
    ("call", "words"),
    [
        (lambda: weir.Layout(7), "layout is of type int; expected a path or a dict"),
        (lambda: weir.simulate(LAYOUT, 7), "workload is of type int"),
        (lambda: weir.simulate(None, []), "layout is of type NoneType"),
        (lambda: weir.simulate(LAYOUT, {"users": object()}), "workload.users is of type object"),
        (lambda: weir.Layout({"host": {1: 2}}), "layout.host: the key 1 is of type int"),
        (lambda: weir.plan(3.5), "need is of type float"),
        (lambda: weir.diagnose({}), "observation is of type dict"),
        (lambda: weir.compare(1, 2), "a side is of type int"),
        (lambda: weir.simulate(LAYOUT, FIO_JOBS, runtime=5), "runtime is of type int"),
        (lambda: weir.simulate(LAYOUT, FIO_JOBS, size=1.5), "size is of type float"),
        (lambda: weir.simulate(LAYOUT, FIO_JOBS, seed=1.5), "seed is of type float"),
        (lambda: weir.Observation("run.weirobs", every=5), "every is of type int"),
        (lambda: weir.simulate(LAYOUT, FIO_JOBS, warm="data"), "warm is 'data'; expected a list"),
        (lambda: weir.simulate(LAYOUT, FIO_JOBS, crash="host"), "crash is 'host'; expected a host"),
        (lambda: weir.Trace("x.weirtrace", window=(1, None)), "window is of type int"),
    ],
)
def test_an_object_of_the_wrong_type_is_a_type_error(call: Callable[[], Any], words: str) -> None:
    with pytest.raises(TypeError, match=words):
        call()


FIO_JOBS = weir.Workload.from_fio(FIO)


@pytest.mark.parametrize(
    ("call", "words"),
    [
        (lambda: weir.simulate(LAYOUT, FIO_JOBS, runtime="5 parsecs"), "runtime: "),
        (lambda: weir.simulate(LAYOUT, FIO_JOBS, every="1us"), "at least 1 ms"),
        (lambda: weir.Workload(), "the workload has no files"),
        (lambda: weir.Trace(), "a trace needs a file"),
        (lambda: weir.Trace("x", pace="fast"), "pace: expected recorded, closed, or a factor"),
        (lambda: weir.Trace("x", depth=4), 'depth 4: .* it needs pace="closed"'),
        (lambda: weir.Trace("x", window=("2s", "1s")), "window from 2 s to 1 s: it is empty"),
        (lambda: weir.simulate(LAYOUT, weir.Trace("none")), "cannot read none"),
        (lambda: weir.simulate(LAYOUT, weir.Trace("x"), runtime="1s"), "runtime is for jobs"),
        (lambda: weir.simulate(LAYOUT, weir.Trace("x"), crash=("host", "1s")), "crash is for jobs"),
        (lambda: weir.simulate(LAYOUT, FIO_JOBS, map={"/mnt/x": "data"}), "map /mnt/x=data: no job has"),
        (lambda: weir.simulate(LAYOUT, FIO_JOBS, warm=["data"]), 'warm data: it has cache = "none"'),
        (lambda: weir.simulate(LAYOUT, FIO_JOBS, crash=("host", "9h")), "the run ends before that"),
        (lambda: weir.Observation(), "needs a file"),
        (lambda: weir.diagnose([]), "there is nothing to diagnose"),
        (lambda: weir.plan({"data": {"size": "1TiB", "iop": 5}}), "unknown field `iop`|iop"),
        (lambda: weir.plan(), "there is nothing to plan for: give a need or an observation"),
        (lambda: weir.plan({}, growth="30%"), "growth needs an observation"),
        (lambda: weir.compare(LAYOUT, LAYOUT), "none of Weir's results"),
        (lambda: weir.Layout({"volume": [{"name": 2**80}]}), "too large a number"),
        (lambda: weir.compare({}, {}, tolerance="five"), "tolerance: "),
        (lambda: weir.simulate(LAYOUT, FIO_JOBS, seed=-1), "seed -1: is not a number from 0 to "),
        (lambda: weir.simulate(LAYOUT, FIO_JOBS, seed=2**64), "is not a number from 0 to "),
        (lambda: weir.compare({}, {}, seeds=-1), "seeds -1: is not a number from 3 to 1000"),
        (lambda: weir.Observation("run.weirobs", every=timedelta(seconds=-5)), "every: "),
    ],
)
def test_an_input_that_is_wrong_is_an_input_error(call: Callable[[], Any], words: str) -> None:
    with pytest.raises(weir.InputError, match=words) as raised:
        call()
    assert isinstance(raised.value, weir.Error)


def test_a_measure_that_is_wrong_is_an_input_error(observed: Path) -> None:
    cases = [
        ({"percentile": 0}, "percentile: .* is not a number above 0 and up to 100"),
        ({"growth": "much"}, "growth: "),
        ({"roles": {"data": "heap"}}, 'roles: data: "heap" is not a role'),
        ({"roles": {"nowhere": "data"}}, "has no nowhere; it has "),
        ({"need": {"data": {"size": "1TiB", "iops": 5}}}, "give its iops; leave out one"),
    ]
    for measure, words in cases:
        with pytest.raises(weir.InputError, match=words):
            weir.plan(observation=observed, **measure)


def test_a_dict_that_contains_itself_is_refused() -> None:
    loop: dict[str, Any] = {}
    loop["host"] = loop
    with pytest.raises(weir.InputError, match="nested too deeply"):
        weir.Layout(loop)


def test_an_observation_that_is_no_observation_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "cut.weirobs"
    path.write_bytes(b"weirobs\x31 and nothing else")
    with pytest.raises(weir.InputError, match="cut.weirobs"):
        weir.Observation(path)
    with pytest.raises(weir.InputError, match="not an observation"):
        weir.Observation.from_bytes(b"something else")


def test_a_run_that_fails_leaves_no_observation(tmp_path: Path, layout: weir.Layout) -> None:
    kept = tmp_path / "kept.weirobs"
    kept.write_bytes(b"before")
    with pytest.raises(weir.InputError):
        weir.simulate(layout, weir.Workload.from_fio(FIO + "filename=x\n"), observe=kept)
    with pytest.raises(weir.InputError, match="it exists and is not an observation"):
        weir.simulate(layout, FIO_JOBS, observe=kept)
    with pytest.raises(weir.RunError, match="cannot write"):
        weir.simulate(layout, FIO_JOBS, observe=tmp_path / "missing" / "run.weirobs")
    assert kept.read_bytes() == b"before"
    assert [path.name for path in tmp_path.iterdir()] == ["kept.weirobs"]


def test_inputs_can_be_sent_to_other_processes(
    observed: Path, layout: weir.Layout, tmp_path: Path
) -> None:
    assert pickle.loads(pickle.dumps(layout)) == layout
    assert pickle.loads(pickle.dumps(FIO_JOBS)) == FIO_JOBS
    observation = weir.Observation(observed)
    copy = pickle.loads(pickle.dumps(observation))
    assert weir.diagnose(copy) == weir.diagnose(observation)
    path = tmp_path / "iostat.txt"
    path.write_text(CUT_IOSTAT)
    observation = weir.Observation(path)
    cut = "its last line was truncated and is left out"
    assert any(cut in note for note in observation.notes)
    copy = pickle.loads(pickle.dumps(observation))
    assert copy.notes == observation.notes
    assert pickle.loads(pickle.dumps(copy)).notes == observation.notes
    assert any(cut in note for note in weir.Observation.from_bytes(copy.to_bytes()).notes)


def test_a_workload_is_the_same_on_a_machine_with_another_environment(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    jobs, common = tmp_path / "jobs.fio", tmp_path / "common.fio"
    common.write_text("iodepth=${DEPTH}\n")
    jobs.write_text(FIO.replace("iodepth=32\n", "include common.fio\n"))
    monkeypatch.setenv("DEPTH", "8")
    own = weir.Workload(jobs)
    expected = weir.simulate(LAYOUT, own, runtime="1s")
    sent = pickle.dumps(own)
    monkeypatch.setenv("DEPTH", "1")
    other = weir.Workload(jobs)
    assert other != own
    assert weir.simulate(LAYOUT, other, runtime="1s") != expected
    monkeypatch.delenv("DEPTH")
    common.unlink()
    copy = pickle.loads(sent)
    assert copy == own
    assert hash(copy) == hash(own)
    assert weir.simulate(LAYOUT, copy, runtime="1s") == expected


def test_an_edition_of_the_user_goes_with_a_layout() -> None:
    catalog = weir.Catalog(ROOT / "catalog/example.toml")
    name = next(
        own["edition"]
        for own in catalog.editions()
        if own["edition"] not in {known["edition"] for known in weir.catalog.editions()}
    )
    layout = weir.Layout({"edition": name, "volume": [{"name": "data", "size": "10 GiB"}]}, catalog)
    assert pickle.loads(pickle.dumps(layout)).edition == name
    with pytest.raises(weir.InputError):
        weir.Layout({"edition": name, "volume": [{"name": "data", "size": "10 GiB"}]})


def test_a_layout_is_diagnosed_and_compared_with_its_own_catalog(tmp_path: Path) -> None:
    catalog = weir.Catalog(ROOT / "catalog/example.toml")
    keys = {
        "edition": "my-cloud",
        "host": {"size": "m8"},
        "volume": [{"name": "data", "size": "100 GiB"}],
    }
    layout = weir.Layout(keys, catalog)
    path = tmp_path / "run.weirobs"
    weir.simulate(layout, FIO_JOBS, every="100ms", observe=path)
    own = weir.diagnose(path, layout=layout)
    assert own == weir.diagnose(path, layout=keys, catalog=catalog)
    with pytest.raises(weir.InputError, match="my-cloud"):
        weir.diagnose(path, layout=keys)
    options: dict[str, Any] = {"workload": FIO_JOBS, "seeds": 3, "runtime": "1s"}
    builtin = weir.Layout(LAYOUT)
    both = weir.compare(layout, builtin, **options)
    assert both == weir.compare(layout, builtin, catalog=catalog, **options)
    # A layout that was sent has a catalog of its own, with the same edition.
    copy = pickle.loads(pickle.dumps(layout))
    assert weir.compare(layout, copy, **options)["comparisons"]
    assert weir.compare(path, path, layout=layout)["comparisons"]


def test_times_and_sizes_can_be_objects_of_python(layout: weir.Layout) -> None:
    own = weir.simulate(layout, FIO_JOBS, runtime=timedelta(milliseconds=500), size=1 << 20)
    assert own == weir.simulate(layout, FIO_JOBS, runtime="500ms", size="1MiB")
    assert own["elapsed_s"] == pytest.approx(0.5, rel=0.1)


def test_the_sampling_interval_can_be_a_timedelta(tmp_path: Path) -> None:
    path = tmp_path / "iostat.txt"
    # Without its times.
    path.write_text("".join(own for own in CUT_IOSTAT.splitlines(True) if "AM" not in own))
    copies = [weir.Observation(path, every=every) for every in ("5s", timedelta(seconds=5))]
    assert copies[0].to_bytes() == copies[1].to_bytes()
    assert len(copies[0]) > 1


def test_options_of_jobs_without_an_effect_are_warnings(layout: weir.Layout) -> None:
    buffered = weir.Workload.from_fio(FIO.replace("direct=1", "direct=0"))
    with pytest.warns(UserWarning, match="the page cache is not simulated"):
        weir.simulate(layout, buffered)


def test_traces_are_not_mixed_with_jobs(trace: Path, tmp_path: Path) -> None:
    jobs = tmp_path / "jobs.fio"
    jobs.write_text(FIO)
    with pytest.raises(weir.InputError, match="web.csv is a trace and .*jobs.fio is not"):
        weir.simulate(LAYOUT, [trace, jobs])
    with pytest.raises(weir.InputError, match="there are no requests to replay"):
        weir.simulate(LAYOUT, weir.Trace(trace, window=("1h", None)), map={"web/0": "data"})


def test_a_trace_can_be_pickled(trace: Path) -> None:
    own = weir.Trace(trace, pace="2x", window=("1s", None), sample="1/2", devices=["web/0"])
    again = pickle.loads(pickle.dumps(own))
    assert again == own and hash(again) == hash(own) and repr(own) == f'Trace("{trace}")'
    assert again != weir.Trace(trace)
    other = weir.simulate(LAYOUT, again, map={"web/0": "data"})
    assert weir.simulate(LAYOUT, own, map={"web/0": "data"}) == other
