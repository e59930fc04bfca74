"""The forms of an ``OasisJob``: its spec in each of them, as if its owner had written only that."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from oasis.kubernetes.objects.node_affinity import narrowed
from oasis.model.errors import InstanceError, located_at
from oasis.model.forms import Speeds

Object = Mapping[str, Any]


def specs_in_forms(spec: Object) -> Iterator[tuple[str, dict[str, Any]]]:
    """The place of each form in `spec`, and the spec in that form; none if it has no forms."""
    own = {name: value for name, value in spec.items() if name not in ("forms", "speeds")}
    # A policy that does not resize takes the number that its owner wrote for the job as it stands.
    own["workers"] = {name: v for name, v in own["workers"].items() if name != "initial"}
    forms, speeds = spec.get("forms"), spec.get("speeds")
    if forms is not None and speeds is not None:
        raise InstanceError("speeds", "expected either speeds or forms, not both")
    if forms is not None:
        for k, form in enumerate(forms):
            with located_at(f"forms[{k}]"):
                in_form = _in_form(own, form)
            yield f"forms[{k}]", in_form
    if speeds is not None:
        with located_at("speeds"):
            table = Speeds(**speeds)
        for value, speed in table.values.items():
            path = f"speeds.values.{value}"
            with located_at(path):
                timed = own["work"].keys() & {"workerSeconds", "minibatchSeconds"}
                work = own["work"] | {name: own["work"][name] / speed for name in timed}
                in_form = _in_form(own, {"requires": {table.label: [value]}}) | {"work": work}
            yield path, in_form


def _in_form(own: Object, form: Object) -> dict[str, Any]:
    """The spec of the job, with the fields of a form in place of its own."""
    spec = dict(own)
    if "work" in form:
        # Worker-seconds are a whole work; what makes up mini-batches may be changed one by one.
        whole = "workerSeconds" in form["work"]
        spec["work"] = {**({} if whole else own["work"]), **form["work"]}
    for name in form.keys() & {"workers", "parameterServers"}:
        with located_at(name):
            if name not in own:
                raise InstanceError("", "expected nothing: the job has no template for them")
            spec[name] = _pods(own[name], form[name])
    if "requires" in form:
        spec["workers"] = _on_nodes(spec["workers"], form)
    return spec


def _pods(own: Object, changes: Object) -> dict[str, Any]:
    """The workers, or the parameter servers, with the fields that a form states."""
    pods = {**own, **{name: changes[name] for name in ("minimum", "maximum") if name in changes}}
    if "resources" in changes:
        first, *others = pods["template"]["spec"]["containers"]
        containers = [{**first, "resources": changes["resources"]}, *others]
        pods["template"] = _with_spec(pods["template"], containers=containers)
    return _on_nodes(pods, changes) if "requires" in changes else pods


def _on_nodes(own: dict[str, Any], form: Object) -> dict[str, Any]:
    """Restrict pods to those of their nodes whose labels have the required values."""
    asked = expressions_of(form["requires"])
    if not asked:
        return own
    affinity = narrowed(own["template"]["spec"].get("affinity"), asked, "matchExpressions")
    return {**own, "template": _with_spec(own["template"], affinity=affinity)}


def _with_spec(template: Object, **changes: Any) -> dict[str, Any]:
    return {**template, "spec": {**template["spec"], **changes}}


def expressions_of(requires: Mapping[str, Any]) -> list[dict[str, Any]]:
    """Convert the labels that a job requires to node affinity expressions."""
    return [
        {"key": name, "operator": "In", "values": list(values)} for name, values in requires.items()
    ]
