"""Bad input: the messages of the command line, and nothing half written."""

from __future__ import annotations

import pickle
from collections.abc import Callable
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
from conftest import FIO, LAYOUT, ROOT

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
        (lambda: weir.Observation(), "needs a file"),
        (lambda: weir.diagnose([]), "there is nothing to diagnose"),
        (lambda: weir.plan({"data": {"size": "1TiB", "iop": 5}}), "unknown field `iop`|iop"),
        (lambda: weir.compare(LAYOUT, LAYOUT), "none of Weir's results"),
        (lambda: weir.Layout({"volume": [{"name": 2**80}]}), "too large a number"),
        (lambda: weir.compare({}, {}, tolerance="five"), "tolerance: "),
    ],
)
def test_an_input_that_is_wrong_is_an_input_error(call: Callable[[], Any], words: str) -> None:
    with pytest.raises(weir.InputError, match=words) as raised:
        call()
    assert isinstance(raised.value, weir.Error)


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


def test_inputs_can_be_sent_to_other_processes(observed: Path, layout: weir.Layout) -> None:
    assert pickle.loads(pickle.dumps(layout)) == layout
    assert pickle.loads(pickle.dumps(FIO_JOBS)) == FIO_JOBS
    observation = weir.Observation(observed)
    copy = pickle.loads(pickle.dumps(observation))
    assert weir.diagnose(copy) == weir.diagnose(observation)


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


def test_times_and_sizes_can_be_objects_of_python(layout: weir.Layout) -> None:
    own = weir.simulate(layout, FIO_JOBS, runtime=timedelta(milliseconds=500), size=1 << 20)
    assert own == weir.simulate(layout, FIO_JOBS, runtime="500ms", size="1MiB")
    assert own["elapsed_s"] == pytest.approx(0.5, rel=0.1)


def test_options_of_jobs_without_an_effect_are_warnings(layout: weir.Layout) -> None:
    buffered = weir.Workload.from_fio(FIO.replace("direct=1", "direct=0"))
    with pytest.warns(UserWarning, match="the page cache is not simulated"):
        weir.simulate(layout, buffered)
