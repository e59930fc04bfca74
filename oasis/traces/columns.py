"""Columns of a table of jobs: named by the user, or recognised by common names."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field

from oasis.model.errors import InstanceError
from oasis.traces.options import UNITS
from oasis.traces.table import COLUMN, csv_cells

# What a table may say of a job -> names of such columns, the likeliest first, without signs between
# the words. A walltime is no duration: most schedulers call the limit so.
KNOWN: Mapping[str, tuple[str, ...]] = {
    "id": ("id", "jobid", "jobuuid", "uuid", "job"),
    "submitted": (
        *("submitted", "submit", "submittime", "submittedtime", "submissiontime", "submission"),
        *("submittedat", "submitat", "submitts", "submittimestamp", "timesubmit", "timesubmitted"),
        *("subtime", "arrival", "arrivaltime", "arrived", "arrivedat", "created", "createdat"),
        *("creationtime", "createtime", "creationtimestamp", "queuedat", "queuetimestamp"),
        *("enqueued", "enqueuedat", "timestamp"),
    ),
    "eligible": ("eligible", "eligibletime", "timeeligible", "eligibleat"),  # when it could run
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
        *("dur", "laufzeit", "dauer"),
    ),
    "gpus": (
        *("gpus", "gpu", "ngpus", "ngpu", "numgpus", "numgpu", "gpunum", "gpucount"),
        *("gpuscount", "nrgpus", "nbgpus", "countgpus", "gpusrequested", "requestedgpus"),
        *("reqgpus", "gpureq", "gpusreq", "gpurequest", "gpusalloc", "allocgpus"),
        *("allocatedgpus", "totalgpus", "accelerators", "numaccelerators", "numberofgpus"),
    ),
    # A table may say the GPUs of each instance of a job, so that such a column is asked about.
    "instances": (
        *("instances", "workernum", "numworkers", "workers", "numinst", "instnum", "numinstances"),
        *("replicas", "numreplicas", "nodes", "numnodes", "nnodes", "nodenum", "nodecount"),
    ),
    "model": ("gpumodel", "gputype", "gpuspec", "acceleratortype", "model", "gpu", "gpus"),
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
OPTIONAL = ("eligible", "model")  # of a known format: not in all of its files
NEEDED = ("submitted", "duration", "gpus")
TIMED = ("submitted", "eligible", "started", "ended", "waiting", "duration", "deadline")
DOCUMENTED = {"start": "started", "end": "ended"}  # of the simple format, beside the fields' names
DELIMITERS = ",;\t|"


@dataclass(frozen=True, slots=True)
class Columns:
    """The columns of a table by their meaning, the units that their names end with, and guesses."""

    of: Mapping[str, str]
    units: Mapping[str, str] = field(default_factory=dict)
    guessed: tuple[str, ...] = field(default=())

    def without(self, name: str) -> Columns:
        """The columns but for one."""
        of = {each: column for each, column in self.of.items() if each != name}
        return Columns(of, self.units, tuple(each for each in self.guessed if each != name))

    def notes(self) -> list[str]:
        """Notes on guesses, for readers of the numbers."""
        if not self.guessed:
            return []
        shown = ", ".join(f"{name}={self.of[name]}" for name in self.guessed)
        return [f"columns guessed from their names: {shown} (--map names others)"]


def parse_map(text: str) -> dict[str, str]:
    """Parse ``--map``: a column for each name; an empty one means no such column."""
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
    header: Sequence[str],
    given: Mapping[str, str],
    file: str,
    preset: Mapping[str, str],
    has_words: Callable[[str], bool] = lambda column: False,
) -> Columns:
    """Find the columns of a table by what is `given`, then the `preset`, then by their names.

    With a preset, nothing is guessed. A column that `has_words` holds no numbers of GPUs.
    """
    found: dict[str, str] = {}
    guessed: list[str] = []
    for name in KNOWN:
        if name in given:
            if given[name]:
                found[name] = _there(header, given[name], name, file)
        elif name in preset and not (name in OPTIONAL and preset[name] not in header):
            found[name] = _there(header, preset[name], name, file)
        # A known format is not guessed at: a column of a likely name may mean something else there.
        elif not preset and not (name == "waiting" and "started" in found):
            taken = {*found.values(), *given.values()}
            free = [column for column in header if column not in taken]
            if name in ("gpus", "model") and len(free) > 1:
                free = [column for column in free if has_words(column) == (name == "model")]
            column = _guess(header, free, name)
            if column:
                found[name] = _there(header, column, name, file)
                if column != name and DOCUMENTED.get(column) != name and name != "instances":
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


def names_submission(header: Sequence[str]) -> bool:
    """Whether a column of this header may say when jobs were submitted."""
    return bool(_guess(header, header, "submitted"))


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
    plain = _plain(column)
    # A name that is a unit alone, as hours; of one letter it is more often something else.
    return plain, UNITS.get(plain, "") if len(plain) > 2 and plain != "min" else ""


def _guess(header: Sequence[str], free: Sequence[str], name: str) -> str:
    """The column with the likeliest name, empty if there is none."""
    if name in header and (name in free or name not in ("gpus", "model")):
        return name
    # Known names outermost: a likelier name wins, wherever its column stands.
    for known in KNOWN[name]:
        for column in free:
            plain = _base(column)[0] if name in TIMED else _plain(column)
            if plain == known:
                return column
    if name == "duration":  # a column of hours, or run_hours
        return next((c for c in free if _base(c)[1] and _base(c)[0] in ("run", _plain(c))), "")
    return ""


def delimiter_of(header: str) -> str:
    """Guess the delimiter of a header: the most frequent candidate, or a comma."""
    return max(DELIMITERS, key=lambda sign: len(csv_cells(header, sign)))
