"""The examples that come with the package: instances, a workload, a trace, a job and a grid."""

from __future__ import annotations

import json
from dataclasses import dataclass
from importlib.resources import files

from oasis.model.choices import choice
from oasis.model.errors import InputError
from oasis.model.instance import Instance
from oasis.model.instance_file import instance_from_dict


@dataclass(frozen=True, slots=True)
class Example:
    """An example file that comes with the package, and what it shows."""

    file: str
    about: str
    command: str


FOLDER = files("oasis") / "examples"
LIST = "list.json"
EXAMPLES = {
    name: Example(**facts)
    for name, facts in json.loads((FOLDER / LIST).read_text(encoding="utf-8")).items()
}


def example_text(name: str) -> str:
    """Return the text of an example; `InputError` if there is none of this name."""
    return (FOLDER / EXAMPLES[choice(name, EXAMPLES, "name")].file).read_text(encoding="utf-8")


def read_example(name: str = "congested") -> Instance:
    """Read an instance that comes with the package.

    Parameters
    ----------
    name : str
        One of those that ``oasis example`` lists as instances.

    Returns
    -------
    Instance
        The same as `oasis.read` of the file that ``oasis example NAME -o FILE`` writes.

    Raises
    ------
    OasisError
        If there is no example of this name, or it is no instance.

    Examples
    --------
    >>> import oasis
    >>> len(oasis.read_example("congested").jobs)
    12
    """
    text = example_text(name)
    if not EXAMPLES[name].about.startswith("instance"):
        raise InputError("name", f"expected an instance, got {name!r}, a {EXAMPLES[name].about}")
    return instance_from_dict(json.loads(text))
