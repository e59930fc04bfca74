"""The fields of the ``OasisJob`` as tables, out of its schema."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from oasis.kubernetes.names import KIND
from oasis.kubernetes.objects.schema import schema_of


def reference() -> str:
    """Tables of all fields, in Markdown.

    Examples
    --------
    >>> "| `spec.work.workerSeconds` | number |" in reference()
    True
    """
    parts = schema_of(KIND)
    lines = []
    for part, title in (("spec", "What its owner writes"), ("status", "What the adapter writes")):
        lines += [f"## {title}", "", "| field | type | meaning |", "|---|---|---|"]
        lines += [f"| `{path}` | {kind} | {text} |" for path, kind, text in rows(part, parts[part])]
        lines.append("")
    lines += ["## Rules between fields", ""]
    lines += [f"- `{path}`: {text}" for path, text in rules("spec", parts["spec"])]
    return "\n".join(lines) + "\n"


def rows(path: str, schema: Mapping[str, Any]) -> Iterator[tuple[str, str, str]]:
    """Path, type and meaning of each field below `path`."""
    required = schema.get("required", ())
    for name, field in schema.get("properties", {}).items():
        below = f"{path}.{name}"
        kind = field["type"]
        if "enum" in field:
            kind = ", ".join(f"`{value}`" for value in field["enum"])
        if kind == "array":
            kind = f"list of {field['items']['type']}s"
        notes = [field.get("description", "").replace("|", "\\|")]
        if name in required:
            notes.append("Required.")
        if "default" in field:
            notes.append(f"Default: `{field['default']}`.")
        yield below, kind, " ".join(note for note in notes if note)
        if "x-kubernetes-preserve-unknown-fields" not in field:
            yield from rows(below, field)
            yield from rows(f"{below}[]", field.get("items", {}))


def rules(path: str, schema: Mapping[str, Any]) -> Iterator[tuple[str, str]]:
    """Path and message of each rule that the API server checks."""
    for rule in schema.get("x-kubernetes-validations", ()):
        yield path, rule["message"]
    for name, field in schema.get("properties", {}).items():
        yield from rules(f"{path}.{name}", field)
