"""``--set POLICY.OPTION=VALUE``, and the shorter flags for what is set most often."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Annotated, Any

import typer

from experiments.cli.flags import comma_list, flag
from experiments.evaluation.imported import is_import_name
from experiments.evaluation.options import Option, OptionError, no_such_option
from experiments.evaluation.policies import LINE, OASIS, POLICIES, SEED, entry_of, having
from oasis.model.choices import did_you_mean
from oasis.model.errors import OasisError

SET = "--set"
SHARED = {SEED: "--policy-seed", LINE: "--line"}  # flags that set an option of every policy

Set = Annotated[
    list[str] | None,
    typer.Option(
        SET,
        metavar="P.OPTION=X",
        help="Set an option of policy P, such as las.thresholds=1,5; repeatable. An unknown one is "
        "answered with those that there are.",
        show_default=False,
    ),
]
PolicySeed = Annotated[
    int | None,
    typer.Option(
        "--policy-seed",
        help=f"The option seed of {', '.join(having(SEED))} at once. [default: 0]",
    ),
]
PolicyLine = Annotated[
    str | None,
    typer.Option(
        "--line",
        metavar="strict|fit",
        help="Whether a job that does not fit blocks those behind it, or they may pass: the option "
        f"line of {', '.join(having(LINE))} at once. [default: strict]",
    ),
]

Chosen = dict[str, dict[str, Any]]


def known_policy(
    name: str, option: str, among: Sequence[str] = tuple(POLICIES), *, own: bool = True
) -> str:
    """`name` if it is a policy; one of somebody's own, ``module:Name``, only where `own` says so.

    Raises
    ------
    OasisError
        Naming the flag `option` and what there is.
    """
    if not own and is_import_name(name):
        raise OasisError(f"{option}: expected one of {', '.join(among)}, got {name!r}")
    try:
        return entry_of(name, among).name
    except ValueError as error:
        other = name.casefold()
        hint = f"; {other} is a policy, but this command does not take it"
        # the cause is what somebody's own module raised: --verbose shows its traceback
        raise OasisError(
            f"{option}: {error}{hint if other in POLICIES else ''}"
        ) from error.__cause__


def known_policies(text: str, option: str, among: Sequence[str] = tuple(POLICIES)) -> list[str]:
    """Names of policies that are given with commas between, each once.

    Raises
    ------
    OasisError
        Naming the flag `option`.

    Examples
    --------
    >>> known_policies("oasis, FIFO", "--policies")
    ['oasis', 'fifo']
    """
    names = [known_policy(name, option, among) for name in comma_list(text, option)]
    return comma_list(",".join(names), option)


def read_assignments(
    texts: Sequence[str], owners: Mapping[str, Mapping[str, Option]]
) -> dict[str, dict[str, Any]]:
    """Read ``OWNER.OPTION=VALUE``.

    Parameters
    ----------
    texts : sequence of str
        What the user gave, one assignment each.
    owners : mapping
        Options by owner, such as the policies that are run.

    Returns
    -------
    dict
        Values by owner and option.

    Raises
    ------
    OasisError
        If one is malformed, comes twice, or names what there is not.

    Examples
    --------
    >>> read_assignments(["las.thresholds=0.5,2"], {"las": POLICIES["las"].options})
    {'las': {'thresholds': (0.5, 2.0)}}
    """
    found: Chosen = {}
    for text in texts:
        place, equals, value = text.partition("=")
        owner, dot, name = place.strip().rpartition(".")
        if not (equals and dot and owner and name):
            raise OasisError(f"{SET}: expected POLICY.OPTION=VALUE, got {text!r}")
        where = f"{SET} {owner}.{name}"
        owner = {each.casefold(): each for each in owners}.get(owner.casefold(), owner)
        if owner not in owners:
            expected = f"expected an option of {', '.join(owners)}, got {owner!r}"
            raise OasisError(f"{where}: {expected}{did_you_mean(owner, owners)}")
        if name not in owners[owner]:
            raise OasisError(f"{where}: {no_such_option(owner, name, owners[owner])}")
        if name in found.setdefault(owner, {}):
            raise OasisError(f"{where}: expected one value, got two")
        try:
            found[owner][name] = owners[owner][name].parse(value)
        except ValueError as error:
            raise OasisError(f"{where}: {error}") from None
    return found


def choose_options(
    names: Sequence[str],
    assignments: Sequence[str] | None,
    *,
    oasis: Mapping[str, Any] | None = None,
    shared: Mapping[str, Any] | None = None,
) -> Chosen:
    """What the user has set of each policy that a command runs, checked.

    Parameters
    ----------
    names : sequence of str
        Names of the policies.
    assignments : sequence of str, optional
        What ``--set`` was given.
    oasis : mapping, optional
        Options of OASiS that were given by flags of their own.
    shared : mapping, optional
        What ``--policy-seed`` and ``--line`` were given, by option: for every policy that has it
        and for which ``--set`` says nothing else; None if not given.

    Raises
    ------
    OasisError
        Naming the flag, also where none of the policies has such an option.

    Examples
    --------
    >>> choose_options(["fifo", "drf"], ["fifo.seed=2"])
    {'fifo': {'seed': 2}, 'drf': {}}
    """
    given = read_assignments(assignments or (), {name: entry_of(name).options for name in names})
    for option, value in (oasis or {}).items():
        spelling = _spelling(option)
        if OASIS not in names:
            raise OasisError(f"{spelling}: an option of oasis alone, got {', '.join(names)}")
        if option in given.setdefault(OASIS, {}):
            raise OasisError(f"{spelling}: expected no {SET} {OASIS}.{option} beside it")
        given[OASIS][option] = value
    for option, value in (shared or {}).items():
        found = having(option, names) if value is not None else []
        if value is not None and not found:
            expected = f"expected one of {', '.join(having(option))}"
            got = ", ".join(names)
            raise OasisError(f"{SHARED[option]}: {expected} among the policies, got {got}")
        for name in found:
            given.setdefault(name, {}).setdefault(option, value)
    flagged = {**(oasis or {}), **({LINE: line} if (line := (shared or {}).get(LINE)) else {})}
    return {name: _checked(name, given.get(name, {}), flagged) for name in names}


def _checked(name: str, given: Mapping[str, Any], flagged: Mapping[str, Any]) -> dict[str, Any]:
    try:
        whole = entry_of(name).resolve(given)
        return {option: whole[option] for option in given}
    except OptionError as error:
        option = error.option
        where = f"{SET} {name}" + (f".{option}" if option else "")
        if name == OASIS and option is not None and option in flagged:
            where = _spelling(option)
        elif option == SEED:
            where = f"{where} or {SHARED[SEED]}"
        elif option == LINE and given[LINE] == flagged.get(LINE):
            where = SHARED[LINE]
        raise OasisError(f"{where}: {error.expected}") from None


def _spelling(option: str) -> str:
    denial, _, _ = POLICIES[OASIS].options[option].denial.partition(": ")
    return denial or flag(option)
