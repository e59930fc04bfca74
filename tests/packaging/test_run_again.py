"""``--set`` reaches every option, and ``oasis run --from`` makes a result again."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from experiments.cli.options import flag
from tests.packaging.commands import EXAMPLE, JOB, SMALL, Oasis, assert_refused
from tests.unit.experiments.unusual import UNUSUAL

MEASURED = "decision_seconds"


def settings(policy: str) -> list[str]:
    """``--set`` for each option that is not the default."""
    words = []
    for option, value in UNUSUAL[policy].items():
        text = ",".join(map(str, value)) if isinstance(value, list) else str(value)
        words += ["--set", f"{policy}.{option}={text}"]
    return words


def unmeasured(text: str) -> str:
    """A result without its measured times, as text: the order of keys counts."""
    document = json.loads(text)
    del document[MEASURED]
    return json.dumps(document, indent=1)


@pytest.mark.parametrize("policy", UNUSUAL)
def test_a_result_is_made_again_to_the_byte(
    run: Oasis, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, policy: str
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("instance.json").write_bytes(EXAMPLE.read_bytes())
    words = ("run", "instance.json", "--policy", policy, *settings(policy))
    code, first, err = run(*words, "--json", "-o", "result.json")
    assert (code, err) == (0, "")
    document = json.loads(first)
    none = {"prices": None, "trust": 0.0} if policy == "oasis" else {}
    assert document["parameters"] == {**none, **UNUSUAL[policy]}
    for again in (("--from", "result.json"), ("instance.json", "--from", "result.json")):
        code, second, err = run("run", *again, "--json")
        assert (code, err) == (0, "")
        assert unmeasured(second) == unmeasured(first)


@pytest.mark.parametrize("option", UNUSUAL["oasis"])
def test_short_flags_of_oasis_are_options_like_others(run: Oasis, option: str) -> None:
    value = UNUSUAL["oasis"][option]
    short = ["--raw-units"] if option == "normalize" else [flag(option), str(value)]
    by_flag = json.loads(run("run", EXAMPLE, *short, "--json")[1])
    by_set = json.loads(run("run", EXAMPLE, "--set", f"oasis.{option}={value}", "--json")[1])
    assert by_flag["parameters"] == by_set["parameters"]
    assert by_flag["parameters"][option] == value


def test_set_reaches_the_policies_of_the_other_commands(run: Oasis, small: Path) -> None:
    words = ("compare", small, "--policies", "rrh,las", "--policy-seed", 3)
    code, out, _ = run(*words, "--set", "rrh.weight=0.7", "--set", "las.seed=5", "--json")
    found = {name: row["parameters"] for name, row in json.loads(out)["policies"].items()}
    assert code == 0
    assert (found["rrh"]["weight"], found["rrh"]["seed"], found["las"]["seed"]) == (0.7, 3, 5)
    words = ("ratio", small, "--set", "oasis.scale=2", "--json")
    document = json.loads(run(*words)[1])
    assert (document["policy"], document["parameters"]["scale"]) == ("oasis", 2.0)
    document = json.loads(run("quote", EXAMPLE, JOB, "--set", "oasis.scale=2", "--json")[1])
    assert document["parameters"]["scale"] == 2.0
    trace = small.with_name("trace.csv")
    trace.write_text("id,submitted,duration,gpus\na,0,9,1\n", encoding="utf-8")
    words = ("replay", trace, "--policies", "srtf", "--set", "srtf.line=fit", "--json")
    assert json.loads(run(*words)[1])["policies"]["srtf"]["parameters"]["line"] == "fit"


WRONG = [
    ("las", "--set: expected POLICY.OPTION=VALUE, got 'las'"),
    ("las.line", "--set: expected POLICY.OPTION=VALUE, got 'las.line'"),
    ("las.=3", "--set: expected POLICY.OPTION=VALUE, got 'las.=3'"),
    ("fifo.seed=1", "--set fifo.seed: expected an option of las, got 'fifo'"),
    ("las.lines=x", "--set las.lines: no such option; las has seed, thresholds, order, line"),
    ("las.seed=many", "--set las.seed: expected an integer, got 'many'"),
    ("las.line=x", "--set las.line: expected strict or fit, got 'x'"),
    ("las.thresholds=2,1", "--set las.thresholds: expected increasing numbers > 0, got"),
]


@pytest.mark.parametrize(("assignment", "message"), WRONG, ids=[text for text, _ in WRONG])
def test_wrong_assignments_are_one_line(run: Oasis, assignment: str, message: str) -> None:
    assert_refused(run("run", EXAMPLE, "--policy", "las", "--set", assignment), message)


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["--policy", "fifo", "--scale", "2"], "--scale: an option of oasis alone, got fifo"),
        (["--scale", "2", "--set", "oasis.scale=3"], "--scale: expected no --set oasis.scale"),
        (["--set", "oasis.scale=2", "--set", "oasis.scale=3"], "--set oasis.scale: expected one"),
        (["--policy", "rrh", "--policy-seed", "-1"], "--policy-seed: expected an integer >= 0"),
    ],
)
def test_what_contradicts_itself_is_one_line(run: Oasis, words: list[str], message: str) -> None:
    assert_refused(run("run", EXAMPLE, *words), message)


# --- results that do not fit --------------------------------------------------------------------


@pytest.fixture
def result(run: Oasis, small: Path) -> Path:
    path = small.with_name("result.json")
    assert run("run", small, "--policy", "fifo", "-o", path)[0] == 0
    return path


def change(path: Path, **entries: Any) -> None:
    document = json.loads(path.read_text(encoding="utf-8"))
    path.write_text(json.dumps(document | entries), encoding="utf-8")


def test_another_instance_is_refused(run: Oasis, small: Path, result: Path) -> None:
    small.write_text(json.dumps(SMALL | {"horizon": 5}), encoding="utf-8")
    assert_refused(run("run", "--from", result), str(small), "the result is of another instance")


def test_an_instance_in_another_layout_is_the_same(run: Oasis, small: Path, result: Path) -> None:
    moved = small.with_name("moved.json")
    moved.write_text(json.dumps(SMALL, indent=3), encoding="utf-8")
    small.unlink()
    assert_refused(run("run", "--from", result), str(small))
    assert run("run", moved, "--from", result)[0] == 0


def test_another_version_is_said_and_run(run: Oasis, result: Path) -> None:
    change(result, version="0.0.1")
    code, out, err = run("run", "--from", result, "--json")
    assert code == 0
    assert json.loads(out)["policy"] == "fifo"
    assert err.startswith("the result is of version 0.0.1, this is ")


@pytest.mark.parametrize(
    ("entries", "message"),
    [
        ({"policy": "lifo"}, "policy: expected one of oasis, recourse, fifo, "),
        ({"parameters": {"speed": 3}}, "fifo.speed: no such option; fifo has seed"),
        ({"instance": 3}, "instance: expected an object, got 3"),
    ],
)
def test_a_result_that_is_none_is_one_line(
    run: Oasis, result: Path, entries: dict[str, Any], message: str
) -> None:
    change(result, **entries)
    assert_refused(run("run", "--from", result), str(result), message)


def test_options_beside_a_result_are_refused(run: Oasis, result: Path) -> None:
    for words in (("--policy", "drf"), ("--scale", 2), ("--set", "fifo.seed=1")):
        refused = run("run", "--from", result, *words)
        assert_refused(refused, "--from: expected no policy and no options beside it")
    assert_refused(run("run"), "FILE: expected an instance file, or --from with a result")
