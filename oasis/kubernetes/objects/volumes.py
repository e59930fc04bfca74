"""Nodes that the volumes of a pod allow, judged as kube-scheduler does.

Its filters VolumeBinding, for claims that are bound, and VolumeZone (Kubernetes 1.36).
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import replace
from typing import Any

from oasis.kubernetes.objects.node_affinity import Expression, NodeRules, Term, terms_of

Object = Mapping[str, Any]
CLAIMS, VOLUMES = "persistentvolumeclaims", "persistentvolumes"

# Labels of volumes, and of nodes; a node may have the newer name of one for its older name.
NEWER = {
    "failure-domain.beta.kubernetes.io/zone": "topology.kubernetes.io/zone",
    "failure-domain.beta.kubernetes.io/region": "topology.kubernetes.io/region",
}
ZONES = tuple(name for pair in NEWER.items() for name in pair)


class Volumes:
    """The claims and volumes that are there.

    Examples
    --------
    >>> claim = {"metadata": {"namespace": "ns", "name": "data"}, "spec": {"volumeName": "v"}}
    >>> zone = {"topology.kubernetes.io/zone": "a"}
    >>> volume = {"metadata": {"name": "v", "labels": zone}, "spec": {}}
    >>> volumes = Volumes({CLAIMS: [claim], VOLUMES: [volume]})
    >>> [str(term.labels[0]) for term in volumes.terms("ns", "data")[0]][0]
    'label topology.kubernetes.io/zone is not a'
    """

    def __init__(self, seen: Mapping[str, Iterable[Object]]) -> None:
        self._claims = {
            (item["metadata"]["namespace"], item["metadata"]["name"]): item
            for item in seen.get(CLAIMS, ())
        }
        self._volumes = {item["metadata"]["name"]: item for item in seen.get(VOLUMES, ())}

    def narrowed(self, rules: NodeRules, namespace: str) -> NodeRules:
        """The rules of a pod, with what its claims ask of nodes."""
        asked = [each for name in sorted(rules.claims) for each in self.terms(namespace, name)]
        return replace(rules, terms=(*rules.terms, *asked))

    def unbound(self, rules: NodeRules, namespace: str) -> list[str]:
        """Claims of a pod whose volumes can still be created on its node."""
        claims = {name: self._claims.get((namespace, name)) for name in sorted(rules.claims)}
        return [name for name, claim in claims.items() if claim and not _volume_of(claim)]

    def terms(self, namespace: str, name: str) -> tuple[tuple[Term, ...], ...]:
        """Return the node requirements of a claim; one term of each group must hold.

        Nothing, as long as it is not bound: then its volume comes to where the pod is.
        """
        claim = self._claims.get((namespace, name))
        if claim is None or claim["metadata"].get("deletionTimestamp"):
            return (_nowhere(f"claim {name} is not there"),)
        if (claim.get("status") or {}).get("phase") == "Lost":
            return (_nowhere(f"claim {name} has lost its volume"),)
        bound = _volume_of(claim)
        if not bound:
            return ()
        volume = self._volumes.get(bound)
        if volume is None:
            return (_nowhere(f"the volume of claim {name} is not there"),)
        labels = volume["metadata"].get("labels") or {}
        found = tuple(_zone(key, labels[key]) for key in ZONES if key in labels)
        required = ((volume.get("spec") or {}).get("nodeAffinity") or {}).get("required")
        return found if required is None else (*found, terms_of(required))


def _volume_of(claim: Object) -> str:
    return (claim.get("spec") or {}).get("volumeName") or ""


def _nowhere(why: str) -> tuple[Term, ...]:
    return (Term((), (), why),)


def _zone(key: str, value: str) -> tuple[Term, ...]:
    """A label of a volume: a node has one of its values, or none of all these labels."""
    values = tuple(value.split("__"))
    found = [Term((Expression(key, "In", values),), ())]
    if key in NEWER:
        lacks = Expression(key, "DoesNotExist")
        found.append(Term((lacks, Expression(NEWER[key], "In", values)), ()))
    anywhere = Term(tuple(Expression(name, "DoesNotExist") for name in ZONES), ())
    return (*found, anywhere)
