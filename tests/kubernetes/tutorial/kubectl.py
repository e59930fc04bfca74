"""The few words of kubectl that the tutorial uses, for machines that have none.

``label node NAME... KEY=VALUE``, ``create -f FILE``, ``patch KIND NAME --type merge -p JSON`` and
``delete KIND NAME``, in the namespace ``default``, with the cluster of ``$KUBECONFIG``. What is
printed is what kubectl prints.
"""

from __future__ import annotations

import argparse
import json
import sys
from pathlib import Path
from typing import Any

import yaml
from kubernetes.config import new_client_from_config
from kubernetes.dynamic import DynamicClient
from kubernetes.dynamic.resource import Resource

MERGE = "application/merge-patch+json"


def say(kind: Resource, name: str, done: str) -> None:
    """Tell what was done, as kubectl does."""
    group = f".{kind.group}" if kind.group else ""
    print(f"{kind.kind.lower()}{group}/{name} {done}")  # noqa: T201


def kind_of(client: DynamicClient, word: str) -> Resource:
    """The kind of a singular or plural name."""
    for kind in client.resources.search():
        if isinstance(kind, Resource) and word in (
            kind.name,
            kind.singular_name,
            kind.kind.lower(),
        ):
            return kind
    raise SystemExit(f'error: the server doesn\'t have a resource type "{word}"')


def label(client: DynamicClient, words: list[str]) -> None:
    kind, *names, assignment = words
    key, _, value = assignment.partition("=")
    nodes = kind_of(client, kind)
    for name in names:
        nodes.patch(body={"metadata": {"labels": {key: value}}}, name=name, content_type=MERGE)
        say(nodes, name, "labeled")


def create(client: DynamicClient, file: str) -> None:
    for body in yaml.safe_load_all(Path(file).read_text(encoding="utf-8")):
        kind = client.resources.get(api_version=body["apiVersion"], kind=body["kind"])
        kind.create(body=body, namespace=body["metadata"].get("namespace", "default"))
        say(kind, body["metadata"]["name"], "created")


def patch(client: DynamicClient, word: str, name: str, change: dict[str, Any]) -> None:
    kind = kind_of(client, word)
    kind.patch(body=change, name=name, namespace="default", content_type=MERGE)
    say(kind, name, "patched")


def delete(client: DynamicClient, word: str, name: str) -> None:
    kind = kind_of(client, word)
    kind.delete(name=name, namespace="default", body={})
    say(kind, f'"{name}"', "deleted")


def main() -> int:
    """Run one command."""
    parser = argparse.ArgumentParser(prog="kubectl")
    verbs = parser.add_subparsers(dest="verb", required=True)
    verbs.add_parser("label").add_argument("words", nargs="+")
    verbs.add_parser("create").add_argument("-f", required=True, dest="file")
    for verb in ("patch", "delete"):
        words = verbs.add_parser(verb)
        words.add_argument("kind")
        words.add_argument("name")
        if verb == "patch":
            words.add_argument("--type", choices=["merge"], required=True)
            words.add_argument("-p", required=True, type=json.loads, dest="change")
    options = parser.parse_args()
    client = DynamicClient(new_client_from_config())
    if options.verb == "label":
        label(client, options.words)
    elif options.verb == "create":
        create(client, options.file)
    elif options.verb == "patch":
        patch(client, options.kind, options.name, options.change)
    else:
        delete(client, options.kind, options.name)
    return 0


if __name__ == "__main__":
    sys.exit(main())
