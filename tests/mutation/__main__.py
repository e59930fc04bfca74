"""Mutate the core at random and report what no test notices: `make mutants`.

The sample depends on the seed and the tree alone.  Exit code 1 if a mutant survives that
`equivalent.toml` does not explain.
"""

from __future__ import annotations

import argparse
import os
import sys
import tomllib
from collections import Counter
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import cache
from pathlib import Path
from queue import SimpleQueue

import numpy as np

from tests.mutation.mutants import Mutant, mutate, places
from tests.mutation.parts import ALWAYS, PARTS, ROOT, files
from tests.mutation.scratch import KILLED, SURVIVED, TIMED_OUT, Scratch

EQUIVALENT = Path(__file__).with_name("equivalent.toml")
SLOWER, GRACE = 4.0, 20.0  # a run of the tests may take 4 times as long as without mutation + 20 s


def main(arguments: Sequence[str] | None = None) -> int:
    """Sample, run, report."""
    options = _options(arguments)
    seed = options.seed
    if seed is None:
        seed = int(np.random.SeedSequence().generate_state(1)[0])
    parts = [part for part in PARTS if part.name in (options.only or [p.name for p in PARTS])]
    sources = {
        module: (part.name, (ROOT / module).read_text("utf-8"))
        for part in parts
        for module in files(part.modules)
    }
    sample = drawn(sources, options.sample, np.random.default_rng(seed), options.line)
    print(f"seed {seed}: {len(sample)} mutants", flush=True)
    chosen = [mutant for mutant in sample if why_equivalent(mutant) is None]
    tests = {part.name: options.tests or files(part.tests + ALWAYS) for part in parts}
    fates = _fates(chosen, tests, options.jobs)
    _report(chosen, fates, len(sample) - len(chosen), seed)
    return int(SURVIVED in fates)


def drawn(
    sources: dict[str, tuple[str, str]], size: int, rng: np.random.Generator, text: str = ""
) -> list[Mutant]:
    """A sample of the mutants whose lines contain `text`, in the order of the table."""
    everywhere = [
        place
        for module, (part, source) in sources.items()
        for place in places(part, module, source)
    ]
    found: dict[str, tuple[int, Mutant]] = {}
    for k in rng.permutation(len(everywhere)):
        if len(found) == size:
            break
        place = everywhere[k]
        mutant = mutate(place, sources[place.module][1])
        if mutant is not None and text in mutant.line:
            found.setdefault(mutant.code, (int(k), mutant))
    return [mutant for _, mutant in sorted(found.values(), key=lambda pair: pair[0])]


def why_equivalent(mutant: Mutant) -> str | None:
    """Return why `mutant` changes nothing, if `equivalent.toml` explains it."""
    for entry in _explanations():
        given = {name: entry[name] for name in ("part", "line", "becomes") if name in entry}
        if all(_same(text, getattr(mutant, name)) for name, text in given.items()):
            return entry["why"]
    return None


@cache
def _explanations() -> tuple[dict[str, str], ...]:
    return tuple(tomllib.loads(EQUIVALENT.read_text("utf-8")).get("mutant", []))


def _same(one: str, other: str) -> bool:
    """Return whether two pieces of code differ in white space alone."""
    return "".join(one.split()) == "".join(other.split())


def _options(arguments: Sequence[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m tests.mutation", description=__doc__)
    names = [part.name for part in PARTS]
    parser.add_argument("--seed", type=int, help="of the sample; drawn and printed by default")
    parser.add_argument("--sample", type=int, default=150, help="number of mutants (150)")
    parser.add_argument("--only", nargs="+", choices=names, help="only these parts of the core")
    parser.add_argument("--line", default="", help="only changes of lines that contain this text")
    parser.add_argument("--tests", nargs="+", help="run these instead of the tests of the table")
    parser.add_argument("--jobs", type=int, default=os.cpu_count() or 1, help="runs at once")
    return parser.parse_args(arguments)


def _fates(chosen: list[Mutant], tests: dict[str, list[str]], jobs: int) -> list[str]:
    """Run the tests against each mutant; return the results."""
    free: SimpleQueue[Scratch] = SimpleQueue()
    copies = [Scratch() for _ in range(max(1, jobs))]
    for copy in copies:
        free.put(copy)

    def in_a_copy(method: str, *rest: object) -> object:
        scratch = free.get()
        try:
            return getattr(scratch, method)(*rest)
        finally:
            free.put(scratch)

    def fate(mutant: Mutant) -> str:
        limit = GRACE + SLOWER * seconds[mutant.part]
        outcome = str(in_a_copy("run", mutant, tests[mutant.part], limit))
        print(f"{outcome:9} {mutant.part:12} {mutant.module}:{mutant.row}", flush=True)
        return outcome

    try:
        with ThreadPoolExecutor(len(copies)) as pool:
            names = sorted({mutant.part for mutant in chosen})
            times = pool.map(lambda name: in_a_copy("baseline", tests[name]), names)
            seconds = dict(zip(names, map(float, times), strict=True))
            return list(pool.map(fate, chosen))
    finally:
        for copy in copies:
            copy.remove()


def _report(chosen: list[Mutant], fates: list[str], equivalent: int, seed: int) -> None:
    for mutant, fate in zip(chosen, fates, strict=True):
        if fate == KILLED:
            continue
        print(f"\n{fate}: {mutant.part}, {mutant.module}:{mutant.row} in {mutant.inside}")
        print(f"  ({mutant.operator})\n  - {mutant.line}\n  + {mutant.becomes}")
    count = Counter(fates)
    print(
        f"\nseed {seed}: {len(chosen) + equivalent} mutants, {count[KILLED]} killed, "
        f"{count[TIMED_OUT]} timed out, {equivalent} known to change nothing, "
        f"{count[SURVIVED]} survived"
    )


if __name__ == "__main__":
    sys.exit(main())
