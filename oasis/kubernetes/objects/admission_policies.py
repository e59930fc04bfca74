"""ValidatingAdmissionPolicies: the checks that the API server makes itself."""

from __future__ import annotations

from typing import Any

from oasis.kubernetes.names import (
    API_VERSION,
    CLASS_KIND,
    FIELD_MANAGER,
    GATE,
    GROUP,
    LOSS,
    PLURAL,
    PROGRESS,
    STATUS,
    VERSION,
)
from oasis.kubernetes.objects.existing import EXISTING

Object = dict[str, Any]
API = "admissionregistration.k8s.io/v1"
POD_UID = "authentication.kubernetes.io/pod-uid"  # in the token of a pod

# The same may write our marks as may write the status of OasisJobs: the controllers, wherever they
# are installed, and administrators.
MAY_WRITE_STATUS = (
    f"authorizer.group('{GROUP}').resource('{PLURAL}').subresource('status')"
    ".namespace(request.namespace).check('patch').allowed()"
)


def admission_policies() -> list[Object]:
    """The policies, each with its binding.

    Examples
    --------
    >>> [made["metadata"]["name"] for made in admission_policies()][::2]
    ['oasis-scheduler-claims', 'oasis-scheduler-progress', 'oasis-scheduler-marks', \
'oasis-scheduler-status']
    """
    return [*_claims(), *_progress(), *_marks(), *_status()]


def _claims() -> list[Object]:
    """Allow an OasisJob only claims within its UtilityClass.

    Where the API server does not know the classes yet, just after the installation, it lets jobs
    pass, and the controller refuses them.
    """
    claim = (
        "object.spec.utility.kind == 'sigmoid' ? double(object.spec.utility.priority) : "
        "object.spec.utility.kind == 'piecewise' ? double(object.spec.utility.values[0]) : "
        "double(object.spec.utility.value)"
    )
    serves = "(!has(params.spec.namespaces) || request.namespace in params.spec.namespaces)"
    mine = (
        "has(object.spec.utilityClassName) ? object.spec.utilityClassName == params.metadata.name "
        f": (has(params.spec.default) && params.spec.default && {serves})"
    )
    changed = (
        "request.operation == 'CREATE' || object.spec.utility != oldObject.spec.utility || "
        "(has(object.spec.utilityClassName) ? object.spec.utilityClassName : '') != "
        "(has(oldObject.spec.utilityClassName) ? oldObject.spec.utilityClassName : '')"
    )
    name = f"'{CLASS_KIND} ' + params.metadata.name"
    validations = [
        {
            "expression": f"!variables.mine || {serves}",
            "messageExpression": f"{name} + ' is not for namespace ' + request.namespace",
        },
        {
            "expression": "!variables.mine || !has(params.spec.kinds)"
            " || object.spec.utility.kind in params.spec.kinds",
            "messageExpression": "'spec.utility.kind: expected one of ' + "
            f"params.spec.kinds.join(', ') + ', as ' + {name} + ' allows'",
        },
        {
            "expression": "!variables.mine || variables.claim <= double(params.spec.maximum)",
            "messageExpression": "'spec.utility: claims ' + string(variables.claim) + ', and ' + "
            f"{name} + ' allows at most ' + string(double(params.spec.maximum))",
        },
    ]
    return _policy(
        "claims",
        [_rule(GROUP, VERSION, PLURAL, "CREATE", "UPDATE")],
        [{"name": "claim-changed", "expression": changed}],
        [{"name": "claim", "expression": claim}, {"name": "mine", "expression": mine}],
        validations,
        {"apiVersion": API_VERSION, "kind": CLASS_KIND},
    )


def _notes(whose: str, field: str) -> str:
    return f"(has({whose}.metadata.{field}) ? {whose}.metadata.{field} : {{}})"  # an empty map


def _progress() -> list[Object]:
    """Allow reports of progress only with the token of the pod itself."""
    same = " && ".join(
        f"(variables.new[?'{name}'].orValue('') == variables.old[?'{name}'].orValue(''))"
        for name in (PROGRESS, LOSS)
    )
    own = (
        f"request.operation == 'UPDATE' && has(request.userInfo.extra) && "
        f"'{POD_UID}' in request.userInfo.extra && "
        f"request.userInfo.extra['{POD_UID}'].exists(uid, uid == object.metadata.uid)"
    )
    return _policy(
        "progress",
        [_rule("", "v1", "pods", "CREATE", "UPDATE")],
        [],
        _old_and_new("annotations"),
        [
            {
                "expression": f"({same}) || ({own})",
                "message": f"{PROGRESS} and {LOSS}: expected to be written from within the pod, "
                "with its own token",
            }
        ],
    )


def _marks() -> list[Object]:
    """Allow only controllers to change our labels, annotations and scheduling gate on pods."""
    mine = f"k.startsWith('{GROUP}/') && k != '{PROGRESS}' && k != '{LOSS}'"

    def unchanged(field: str) -> str:
        new, old = _notes("object", field), _notes("oldObject", field)
        return (
            f"{new}.all(k, !({mine}) || (k in {old} && {old}[k] == {new}[k])) && "
            f"{old}.all(k, !({mine}) || k in {new})"
        )

    def gated(whose: str) -> str:
        return (
            f"(has({whose}.spec.schedulingGates) && "
            f"{whose}.spec.schedulingGates.exists(g, g.name == '{GATE}'))"
        )

    same = f"{unchanged('labels')} && {unchanged('annotations')}"
    held = f"{gated('oldObject')} == {gated('object')}"
    return _policy(
        "marks",
        [_rule("", "v1", "pods", "UPDATE")],
        [{"name": "marks-changed", "expression": f"!({same}) || !({held})"}],
        [],
        [
            {
                "expression": MAY_WRITE_STATUS,
                "message": f"labels and annotations {GROUP}/, and the gate {GATE}: expected to be "
                "changed by the controller alone",
            }
        ],
    )


def _status() -> list[Object]:
    """Allow only controllers to write the annotation that stands for a status."""
    rules = [
        _rule(*kind.api_version.rpartition("/")[::2], kind.where.plural, "CREATE", "UPDATE")
        for kind in EXISTING
    ]
    same = f"variables.new[?'{STATUS}'].orValue('') == variables.old[?'{STATUS}'].orValue('')"
    return _policy(
        "status",
        rules,
        [],
        _old_and_new("annotations"),
        [
            {
                "expression": f"({same}) || {MAY_WRITE_STATUS}",
                "message": f"{STATUS}: expected to be written by the controller alone",
            }
        ],
    )


def _old_and_new(field: str) -> list[Object]:
    old = f"oldObject == null ? {{}} : {_notes('oldObject', field)}"
    return [
        {"name": "new", "expression": _notes("object", field)},
        {"name": "old", "expression": old},
    ]


def _rule(group: str, version: str, resource: str, *operations: str) -> Object:
    return {
        "apiGroups": [group],
        "apiVersions": [version],
        "operations": list(operations),
        "resources": [resource],
    }


def _policy(
    what: str,
    rules: list[Object],
    conditions: list[Object],
    variables: list[Object],
    validations: list[Object],
    params: Object | None = None,
) -> list[Object]:
    meta = {"name": f"{FIELD_MANAGER}-{what}"}
    # What the controller checks as well must not keep anybody from their jobs; the rest must hold.
    spec: Object = {"failurePolicy": "Fail" if params is None else "Ignore"}
    if params is not None:
        spec["paramKind"] = params
    spec["matchConstraints"] = {"resourceRules": rules}
    if conditions:
        spec["matchConditions"] = conditions
    if variables:
        spec["variables"] = variables
    spec["validations"] = [{**each, "reason": "Forbidden"} for each in validations]
    binding: Object = {"policyName": meta["name"], "validationActions": ["Deny"]}
    if params is not None:
        binding["paramRef"] = {"selector": {}, "parameterNotFoundAction": "Allow"}
    kind = "ValidatingAdmissionPolicy"
    return [
        {"apiVersion": API, "kind": kind, "metadata": meta, "spec": spec},
        {"apiVersion": API, "kind": f"{kind}Binding", "metadata": meta, "spec": binding},
    ]
