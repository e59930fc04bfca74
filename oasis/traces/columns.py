"""Columns of a table of jobs: named by the user, or recognised by common names."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from oasis.model.errors import InstanceError
from oasis.traces.table import COLUMN, csv_cells

# What a table may say of a job -> names of such columns, the likeliest first, without signs between
# the words. A walltime is no duration: most schedulers call the limit so.
KNOWN: Mapping[str, tuple[str, ...]] = {
    "id": ("id", "jobid", "jobuuid", "uuid"),
    "submitted": (
        *("submitted", "submit", "submittime", "submittedtime", "submissiontime", "submission"),
        *("submittedat", "submitat", "submitts", "submittimestamp", "timesubmit", "timesubmitted"),
        *("subtime", "arrival", "arrivaltime", "arrived", "arrivedat", "created", "createdat"),
        *("creationtime", "createtime", "creationtimestamp", "queuedat", "queuetimestamp"),
        *("enqueued", "enqueuedat", "timestamp"),
    ),
    "started": (
        *("started", "start", "starttime", "startedat", "startts", "starttimestamp", "timestart"),
        *("begin", "begintime", "scheduledtime", "scheduledat", "launchtime", "launchedat"),
    ),
    "ended": (
        *("ended", "end", "endtime", "endedat", "endts", "endtimestamp", "timeend", "finish"),
        *("finished", "finishtime", "finishedat", "completed", "completedat", "completiontime"),
        *("completiontimestamp", "stopped", "stoptime", "stoppedat", "deletiontime"),
    ),
    "waiting": (  # a queue time may be a moment
        *("waiting", "wait", "waited", "waittime", "waitingtime", "waitduration"),
        *("queuingtime", "queueingtime", "queuedelay"),
    ),
    "duration": (
        *("duration", "runtime", "elapsed", "elapsedtime", "elapsedraw", "jobduration"),
        *("jobruntime", "executiontime", "exectime", "runduration", "timeelapsed"),
    ),
    "gpus": (
        *("gpus", "gpu", "ngpus", "ngpu", "numgpus", "numgpu", "gpunum", "gpucount"),
        *("gpuscount", "nrgpus", "nbgpus", "countgpus", "gpusrequested", "requestedgpus"),
        *("reqgpus", "gpureq", "gpusreq", "gpurequest", "gpusalloc", "allocgpus"),
        *("allocatedgpus", "totalgpus", "accelerators", "numaccelerators", "numberofgpus"),
    ),
    "owner": (
        *("owner", "user", "username", "userid", "iduser", "uid", "submitter", "submittedby"),
        *("account", "group", "groupid", "team", "tenant", "organisation", "organization", "org"),
        *("project", "namespace", "vc", "virtualcluster"),
    ),
    "virtual_cluster": ("virtualcluster", "vc"),
    "worth": ("worth", "utility"),
    "deadline": ("deadline", "due", "dueat", "duetime", "duedate"),
    "state": ("state", "status", "jobstate", "jobstatus", "finalstatus", "outcome"),
}
NEEDED = ("submitted", "duration", "gpus")
TIMED = ("submitted", "started", "ended", "waiting", "duration", "deadline")  # may have units
DOCUMENTED = {"start": "started", "end": "ended"}  # of the simple format, beside the fields' names
UNITS = {  # how the name of a column ends -> the unit of its numbers
    **dict.fromkeys(("s", "sec", "secs", "second", "seconds"), "s"),
    **dict.fromkeys(("ms", "millis", "msec", "milliseconds"), "ms"),
    **dict.fromkeys(("m", "min", "mins", "minute", "minutes"), "min"),
    **dict.fromkeys(("h", "hr", "hrs", "hour", "hours"), "h"),
}
DELIMITERS = ",;\t|"


@dataclass(frozen=True, slots=True)
class Columns:
    """The columns of a table by their meaning.

    Parameters
    ----------
    of : mapping of str to str
        A key of `KNOWN` -> the name of the column.
    units : mapping of str to str
        A key of `TIMED` -> the unit that the name of its column ends with; those that have one.
    guessed : tuple of str
        The keys whose columns were found by their names.
    """

    of: Mapping[str, str]
    units: Mapping[str, str] = field(default_factory=dict)
    guessed: tuple[str, ...] = field(default=())

    def notes(self) -> list[str]:
        """Notes on guesses, for readers of the numbers."""
        if not self.guessed:
            return []
        shown = ", ".join(f"{name}={self.of[name]}" for name in self.guessed)
        return [f"columns guessed from their names: {shown} (--map names others)"]


def parse_map(text: str) -> dict[str, str]:
    """Parse ``--map``: a column for each name; an empty one means no such column.

    Raises
    ------
    InstanceError
        Naming the entry that is none.

    Examples
    --------
    >>> parse_map("submitted=submit_time,gpus=gpu_num,started=")
    {'submitted': 'submit_time', 'gpus': 'gpu_num', 'started': ''}
    """
    found: dict[str, str] = {}
    for part in csv_cells(text) if text else []:
        name, equals, column = (piece.strip() for piece in part.partition("="))
        if not equals or name not in KNOWN:
            expected = f"expected NAME=COLUMN with a name of {', '.join(KNOWN)}"
            raise InstanceError("map", expected, part)
        if name in found:
            raise InstanceError("map", f"expected {name} once", text)
        found[name] = column
    return found


def columns_of(
    header: Sequence[str], given: Mapping[str, str], file: str, preset: Mapping[str, str]
) -> Columns:
    """Find the columns of a table by what is `given`, then the `preset`, then by their names.

    Parameters
    ----------
    header : sequence of str
        The names of all columns.
    given : mapping of str to str
        As `parse_map` makes it.
    file : str
        Name of the file, for messages.
    preset : mapping of str to str
        The columns of a known format; with one, nothing is guessed.

    Raises
    ------
    InstanceError
        Naming what no column says, or a column that is not there or is there twice.

    Examples
    --------
    >>> columns_of(["Job ID", "submit_time", "runtime_min", "n_gpus"], {}, "jobs.csv", {}).of
    {'id': 'Job ID', 'submitted': 'submit_time', 'duration': 'runtime_min', 'gpus': 'n_gpus'}
    """
    found: dict[str, str] = {}
    guessed: list[str] = []
    for name in KNOWN:
        if name in given:
            if given[name]:
                found[name] = _there(header, given[name], name, file)
        elif name in preset:
            found[name] = _there(header, preset[name], name, file)
        # A known format is not guessed at: a column of a likely name may mean something else there.
        elif not preset and not (name == "waiting" and "started" in found):
            column = _guess(header, name, {*found.values(), *given.values()})
            if column:
                found[name] = _there(header, column, name, file)
                if column != name and DOCUMENTED.get(column) != name:
                    guessed.append(name)
    _check_complete(header, found, file)
    units = {name: _base(found[name])[1] for name in TIMED if name in found and not preset}
    return Columns(found, {name: unit for name, unit in units.items() if unit}, tuple(guessed))


def _check_complete(header: Sequence[str], found: Mapping[str, str], file: str) -> None:
    has_run = "ended" in found and ("started" in found or "waiting" in found)
    missing = [
        name for name in NEEDED if name not in found and not (name == "duration" and has_run)
    ]
    if not missing:
        return
    many = len(missing) > 1
    where = f"{COLUMN.strip()}{'s' if many else ''} {', '.join(missing)}"
    these = "these columns" if many else "this column"
    also = ", or started and ended," if missing == ["duration"] else ""
    also = also or (", or started and ended for duration," if "duration" in missing else "")
    expected = f"expected {these}{also} once in the header of {file}: {','.join(header)[:200]}"
    hint = ",".join(f"{name}=COLUMN" for name in missing)
    raise InstanceError(where, f"{expected}; --map {hint} names {'others' if many else 'another'}")


def _there(header: Sequence[str], column: str, name: str, file: str) -> str:
    if header.count(column) == 1:
        return column
    often = "twice or more" if column in header else "not"
    shown = ",".join(header)[:200]
    raise InstanceError(
        f"{COLUMN}{column}", f"is {often} in the header of {file}, for {name}: {shown}"
    )


def _plain(column: str) -> str:
    """A name without signs between its words: ``Submit time`` and ``submit_time`` are the same."""
    return re.sub(r"[^a-z0-9]", "", column.lower())


def _base(column: str) -> tuple[str, str]:
    """A name without the unit at its end, and that unit: ``runtime [min]`` -> runtime, min."""
    words = re.findall(r"[a-z0-9]+", re.sub(r"(?<=[a-z0-9])(?=[A-Z])", "_", column).lower())
    if len(words) > 1 and words[-1] in UNITS:
        unit = UNITS[words.pop()]
        return "".join(words[:-1] if words[1:] and words[-1] == "in" else words), unit
    return _plain(column), ""


def _guess(header: Sequence[str], name: str, taken: set[str]) -> str:
    """The column with the likeliest name, empty if there is none."""
    if name in header:
        return name
    # Known names outermost: a likelier name wins, wherever its column stands.
    for known in KNOWN[name]:
        for column in header:
            plain = _base(column)[0] if name in TIMED else _plain(column)
            if plain == known and column not in taken:
                return column
    return ""


def delimiter_of(header: str) -> str:
    r"""Guess the delimiter of a header: the most frequent candidate, or a comma.

    Examples
    --------
    >>> delimiter_of('"id";"submitted, local time";"gpus"'), delimiter_of("id")
    (';', ',')
    """
    return max(DELIMITERS, key=lambda sign: len(csv_cells(header, sign)))
