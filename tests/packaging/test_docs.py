"""The README and the pages say what is true: commands, output, links, names, headings."""

from __future__ import annotations

import re
import tomllib
from pathlib import Path

import api_pages
import pytest
from source_links import citations

from tests.packaging.commands import shell

ROOT = Path(__file__).parents[2]
DOCS = ROOT / "docs"
README = (ROOT / "README.md").read_text(encoding="utf-8")
NOTEBOOKS = sorted(DOCS.glob("gallery/*.md"))
PAGES = sorted([*DOCS.glob("*.md"), *NOTEBOOKS, *ROOT.glob("*.md")])
CODE = sorted(
    p
    for name in ("oasis", "offline", "baselines", "experiments")
    for p in (ROOT / name).rglob("*.py")
)
# who is first among methods side by side, and times
MEASURED = re.compile(
    r"^(best schedule by|upper bound by|solved by|decision time) .*$", re.MULTILINE
)


def blocks(text: str, language: str) -> list[str]:
    return re.findall(rf"^```{language}\n(.*?)^```$", text, re.MULTILINE | re.DOTALL)


def headings(page: Path) -> set[str]:
    return set(re.findall(r"^#+ (.*)$", page.read_text(encoding="utf-8"), re.MULTILINE))


def anchor(heading: str) -> str:
    return re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-")


def test_readme_transcript_is_real_output() -> None:
    (transcript,) = [block for block in blocks(README, "console") if "oasis ratio" in block]
    command, _, printed = transcript.partition("\n")
    arguments = command.removeprefix("$ oasis ").split()
    code, out, _ = shell(*arguments)
    assert code == 0
    found = "\n".join(line.rstrip() for line in out.splitlines()) + "\n"
    assert MEASURED.sub("", found) == MEASURED.sub("", printed)
    ratio = f"{float(out.partition('competitive ratio')[2].split()[0]):.2f}"
    front = " ".join((DOCS / "index.md").read_text(encoding="utf-8").split())
    assert (
        f"of {ratio} with its proof: no schedule of these twelve jobs earns more than {ratio}"
        in front
    )


@pytest.mark.parametrize("page", ["README.md", "docs/index.md", "docs/getting-started.md"])
def test_pages_name_the_oldest_python(page: str) -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    wanted = f"Python {project['requires-python'].removeprefix('>=')} or newer"
    assert wanted in (ROOT / page).read_text(encoding="utf-8")


def test_readme_snippets_run(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.chdir(tmp_path)  # the picture lands there
    snippets = blocks(README, "python")
    assert snippets
    for snippet in snippets:
        exec(compile(snippet, "README.md", "exec"), {})


@pytest.mark.parametrize("page", ["README.md", "docs/getting-started.md"])
def test_extras_are_those_of_the_project_and_bring_what_is_said(page: str) -> None:
    extras = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    extras = extras["optional-dependencies"]
    text = (ROOT / page).read_text(encoding="utf-8")
    rows = dict(re.findall(r"^\| `(\w+)` \| .* \| (.*) \|$", text, re.MULTILINE))
    developers = {"test", "frameworks", "mutants", "bench", "docs", "release", "lint", "dev"}
    assert set(extras) - developers == set(rows)
    for name, brought in rows.items():
        for wanted in extras[name]:
            library, _, own = re.split(r"[>=<,]", wanted)[0].partition("[")
            for word in own.rstrip("]").split(",") if own else [library]:
                assert word.lower() in brought.lower(), (name, word)
    left_out = set(extras) - developers - {"all"} - set(re.findall(r"`(\w+)`", rows["all"]))
    assert left_out == {"dask"}
    assert "| `all` | everything above but `dask` |" in text


def test_gallery_lists_its_notebooks_which_run_anywhere_and_have_pictures() -> None:
    index = (DOCS / "gallery" / "index.md").read_text(encoding="utf-8")
    names = {page.name for page in NOTEBOOKS} - {"index.md"}
    assert set(re.findall(r"\]\((\S+\.md)\)", index)) == names
    assert len(names) >= 6
    for name in names:
        text = (DOCS / "gallery" / name).read_text(encoding="utf-8")
        assert "import scratch" not in text, name
        assert "docs/" not in text, name  # there is no clone around a notebook that was downloaded
        assert "%matplotlib inline\n" in text, name  # without it Jupyter shows no picture
        assert re.search(r"^figure\n|\.figure$|_page\(", text, re.MULTILINE), name


def test_no_page_shows_a_prompt_in_a_block_that_is_copied_whole() -> None:
    for page in PAGES:
        for block in blocks(page.read_text(encoding="utf-8"), "(?:bash|sh|shell)"):
            assert not re.search(r"^[$>] ", block, re.MULTILINE), page.name


def test_pages_have_no_output_that_was_typed_in_but_what_tests_compare() -> None:
    """The transcripts of the README (above) and of a cluster (tests/kubernetes)."""
    run = ("install", "submit", "observe", "operate")
    compared = {"README.md", *(f"docs/kubernetes-{name}.md" for name in run)}
    typed = set()
    for path in (*DOCS.rglob("*.md"), *ROOT.glob("*.md")):
        for block in blocks(path.read_text(encoding="utf-8"), "console"):
            commands = block.replace("\\\n", " ").splitlines()
            if any(line and not line.startswith("$ ") for line in commands):
                typed.add(path.relative_to(ROOT).as_posix())
    built = {page for page in typed if "/_build/" in page}
    assert typed - compared - built == set()


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_links_between_pages_lead_somewhere(page: Path) -> None:
    for target in re.findall(r"\]\((?!https://)([^)\s]+)\)", page.read_text(encoding="utf-8")):
        name, _, fragment = target.partition("#")
        linked = page.parent / name if name else page
        assert linked.is_file(), target
        if fragment:
            assert fragment in {anchor(heading) for heading in headings(linked)}, target


def test_pages_and_headings_cited_in_the_code_exist() -> None:
    found: set[tuple[str, str]] = set()
    for path in CODE:
        text = " ".join(path.read_text(encoding="utf-8").split())
        for name, heading in re.findall(r'docs/([\w-]+)(?:, "([^"]+)")?', text):
            found.add((name, heading))
            page = DOCS / f"{name}.md"
            assert page.is_file(), (path, name)
            if heading:
                assert heading in headings(page), (path, heading)
    assert len(found) > 10


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_tests_cited_in_the_pages_exist(page: Path) -> None:
    for target in re.findall(r"`(tests/[\w/.]+?)(?:::(\w+))?`", page.read_text(encoding="utf-8")):
        path = ROOT / target[0]
        assert path.exists(), target[0]
        if target[1]:
            assert f"def {target[1]}(" in path.read_text(encoding="utf-8"), target


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_files_cited_in_the_pages_exist(page: Path) -> None:
    cited = r"`((?:oasis|offline|baselines|experiments)/[\w/.-]+)`"
    for name in re.findall(cited, page.read_text(encoding="utf-8")):
        if "NAME" not in name and page.name != "own-policy.md":  # files to be written
            assert (ROOT / name).exists(), name


def test_every_room_is_on_the_page_of_the_architecture() -> None:
    page = (DOCS / "architecture.md").read_text(encoding="utf-8")
    rooms = {path.parent.relative_to(ROOT).as_posix() for path in CODE} - {"oasis", "experiments"}
    described = set(re.findall(r"^\| `([\w/]+)` \|", page, re.MULTILINE))
    assert rooms - described == set()
    assert {name for name in described if not (ROOT / name).is_dir()} == set()
    tests = {f"tests/{path.name}" for path in (ROOT / "tests").iterdir() if path.is_dir()}
    assert {name for name in tests if "__" not in name} - described == set()


def test_notation_covers_every_equation() -> None:
    page = (DOCS / "notation.md").read_text(encoding="utf-8")
    cells = re.findall(r"^\| (\(\d.*?\)) \|", page, re.MULTILINE)
    covered: set[int] = set()
    for cell in cells:
        for first, last in re.findall(r"\((\d+)\)(?:–\((\d+)\))?", cell):
            covered |= set(range(int(first), int(last or first) + 1))
    assert covered == {*range(1, 28), 32}


def test_every_constraint_is_cited_where_it_is_checked_and_where_it_is_solved() -> None:
    cited = {"oasis/certify/verify.py": "", "offline": ""}
    for where, _, found in citations():
        for start in cited:
            if where.startswith(start):
                cited[start] += found + " "
    missing = {
        start: [n for n in range(1, 11) if f"({n})" not in text] for start, text in cited.items()
    }
    assert missing == {start: [] for start in cited}


def test_every_documented_name_has_one_page_and_is_in_the_index_of_the_reference() -> None:
    text = (DOCS / "api.md").read_text(encoding="utf-8")
    written = api_pages.pages(text)
    assert len(written) == len(re.findall("^### ", text, re.MULTILINE)) > 40  # no two of one name
    described = api_pages.names(text)
    assert len(set(described)) == len(described)
    shown = re.findall(
        r"^\.\. (?:auto\w+|py:data):: (?:\S+\.)?(\w+)", "".join(written.values()), re.MULTILINE
    )
    assert shown == [name.rpartition(".")[2] for name in described]
    index = api_pages.index(text)
    assert re.findall(r"^   ~([\w.]+)$", index, re.MULTILINE) == described
    assert re.findall(r"^api/(.*)$", index, re.MULTILINE) == list(written)
    assert "auto" not in index.replace("autosummary", "")
    for page in written.values():  # links that led from `docs` lead from `docs/api`
        for target in re.findall(r"\]\(([^)]+)\)", page):
            assert (DOCS / "api" / target).resolve().is_file(), target


def test_the_sidebar_is_short() -> None:
    index = (DOCS / "index.md").read_text(encoding="utf-8")
    trees = re.findall(r"```\{toctree\}\n(?::[^\n]*\n)*\n(.*?)```", index, re.DOTALL)
    assert 10 < len(" ".join(trees).split()) <= 25


def test_words_of_readers_lead_to_one_page_that_exists() -> None:
    pytest.importorskip("docutils", reason="needs the docs extra")
    from search_words import PHRASES

    written = api_pages.pages((DOCS / "api.md").read_text(encoding="utf-8"))
    names = {f"{api_pages.LIST}/{name}" for name in written}
    names |= {page.relative_to(DOCS).with_suffix("").as_posix() for page in DOCS.rglob("*.md")}
    assert set(PHRASES) - names == set()
    orders = [tuple(sorted(text.split())) for texts in PHRASES.values() for text in texts]
    assert len(set(orders)) == len(orders)
