"""The ``OasisJob`` as a custom resource: a structural schema, with rules between its fields."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from oasis.kubernetes.names import API_VERSION, GROUP, KIND, PLURAL, SINGULAR, VERSION
from oasis.kubernetes.objects.job_forms import WORK
from oasis.kubernetes.objects.network import DEFAULT_PORT, FRAMEWORKS, LARGEST_PORT
from oasis.kubernetes.objects.node_affinity import LABEL_NAME, LABEL_VALUE
from oasis.kubernetes.objects.oasis_job import (
    BACKOFF_LIMIT,
    BY_MINIBATCH,
    COMPLETION,
    DEFAULT_GRACE,
    ON_REJECTION,
    REQUIRED,
    RESIZE,
    UTILITY_FIELDS,
)
from oasis.model.validation import LARGEST_AMOUNT, LARGEST_COUNT

Schema = dict[str, Any]
TIME: Schema = {"type": "string", "format": "date-time"}


def object_schema(
    description: str,
    properties: Schema,
    required: tuple[str, ...] = (),
    rules: list[dict[str, str]] | None = None,
) -> Schema:
    """The schema of an object with these fields."""
    found: Schema = {"type": "object", "description": description, "properties": properties}
    if required:
        found["required"] = list(required)
    if rules:
        found["x-kubernetes-validations"] = rules
    return found


def number_schema(description: str, minimum: float = 0, **more: Any) -> Schema:
    """The schema of a number that the model can compute with."""
    # The API server reads a maximum beyond 64 bits as a negative one, so a rule says it.
    most = _rule(f"self <= {LARGEST_AMOUNT:.1e}", "expected a smaller number")
    limits = {"minimum": minimum, "x-kubernetes-validations": [most]}
    return {"type": "number", **limits, "description": description, **more}


def _integer(description: str, minimum: int = 1) -> Schema:
    limits = {"minimum": minimum, "maximum": LARGEST_COUNT}
    return {"type": "integer", **limits, "description": description}


def text_schema(description: str, *among: str, default: str | None = None) -> Schema:
    """The schema of a string, perhaps one of a few."""
    found: Schema = {"type": "string", "description": description}
    if among:
        found["enum"] = list(among)
    if default is not None:
        found["default"] = default
    return found


def names_schema(description: str) -> Schema:
    """The schema of a list of names."""
    items = {"type": "string", "minLength": 1}
    return {"type": "array", "items": items, "description": description}


def _rule(rule: str, message: str) -> dict[str, str]:
    return {"rule": rule, "message": message}


def _template(what: str) -> Schema:
    """A pod template; the API server checks it when the pods are made, and so does the adapter."""
    return {
        "type": "object",
        "description": f"The pod template of a {what}; its requests are what the plan reserves.",
        "x-kubernetes-preserve-unknown-fields": True,
        "x-kubernetes-validations": [
            _rule("has(self.spec)", "expected a pod template with a spec"),
        ],
        "properties": {
            "spec": {
                "type": "object",
                "x-kubernetes-preserve-unknown-fields": True,
                "x-kubernetes-validations": [
                    _rule("!has(self.nodeName)", "nodeName: the plan decides on it"),
                    _rule("!has(self.schedulingGates)", "schedulingGates: the plan decides on it"),
                ],
                "required": ["containers"],
                "properties": {
                    "nodeName": {"type": "string"},
                    "schedulingGates": {
                        "type": "array",
                        "items": {"type": "object", "x-kubernetes-preserve-unknown-fields": True},
                    },
                    "containers": {
                        "type": "array",
                        "minItems": 1,
                        "items": {"type": "object", "x-kubernetes-preserve-unknown-fields": True},
                    },
                },
            }
        },
    }


def _utility() -> Schema:
    names = sorted({name for fields in UTILITY_FIELDS.values() for name in fields})
    rules = []
    for kind, fields in UTILITY_FIELDS.items():
        has = " && ".join(
            f"has(self.{name})" if name in fields else f"!has(self.{name})" for name in names
        )
        rules.append(
            _rule(f"self.kind != '{kind}' || ({has})", f"{kind} has exactly {', '.join(fields)}")
        )
    rules += [
        _rule(
            "!has(self.delaysSeconds) || (self.delaysSeconds.isSorted() && "
            "self.delaysSeconds.all(d, self.delaysSeconds.exists_one(e, e == d)))",
            "delaysSeconds: expected strictly increasing delays",
        ),
        _rule(
            "!has(self.values) || self.values.map(v, -v).isSorted()",
            "values: expected non-increasing values",
        ),
        _rule(
            "!has(self.values) || !has(self.delaysSeconds) || "
            "size(self.values) == size(self.delaysSeconds)",
            "values: expected one for each delay",
        ),
    ]
    points = {"type": "array", "minItems": 1, "maxItems": 100}
    return object_schema(
        "What completing the job some time after its arrival is worth.",
        {
            "kind": text_schema("Form of the function.", *UTILITY_FIELDS),
            "priority": number_schema("sigmoid: value of an immediate completion (gamma1)."),
            "decayPerSecond": number_schema("sigmoid: how fast it falls at the target (gamma2)."),
            "targetSeconds": number_schema("sigmoid: target, in seconds after arrival (gamma3)."),
            "value": number_schema("constant and deadline: the value."),
            "deadlineSeconds": number_schema(
                "deadline: worth nothing later than this after arrival."
            ),
            "delaysSeconds": {
                **points,
                "items": number_schema("A delay."),
                "description": "piecewise: increasing delays.",
            },
            "values": {
                **points,
                "items": number_schema("A value."),
                "description": "piecewise: a value for each delay.",
            },
        },
        ("kind",),
        rules=rules,
    )


def _work() -> Schema:
    has = " && ".join(f"has(self.{name})" for name in BY_MINIBATCH)
    lacks = " && ".join(f"!has(self.{name})" for name in (*BY_MINIBATCH, "gradientMb"))
    return object_schema(
        "How much there is to do: worker-seconds, or epochs over chunks of minibatches.",
        {
            "workerSeconds": number_schema(
                "Seconds that one worker would need.", exclusiveMinimum=True
            ),
            "epochs": _integer("Passes over the data."),
            "chunks": _integer("Data chunks; at most so many workers train at a time."),
            "minibatches": _integer("Minibatches of a chunk."),
            "minibatchSeconds": number_schema("Seconds in which a worker trains a minibatch."),
            "gradientMb": number_schema(
                "Megabytes that a worker pushes, and pulls, for each minibatch."
            ),
        },
        rules=[
            _rule(
                f"has(self.workerSeconds) ? ({lacks}) : ({has})",
                f"expected workerSeconds alone, or all of {', '.join(BY_MINIBATCH)}",
            ),
            _rule(
                "!has(self.minibatchSeconds) || self.minibatchSeconds > 0.0"
                " || (has(self.gradientMb) && self.gradientMb > 0.0)",
                "minibatchSeconds: expected more than nothing without gradients to send",
            ),
        ],
    )


def _requires(whose: str) -> Schema:
    """Labels of nodes, each with the values that will do."""
    value = {"type": "string", "pattern": f"^{LABEL_VALUE.pattern}$"}
    values = {"type": "array", "minItems": 1, "items": value}
    return {
        "type": "object",
        "additionalProperties": values,
        "description": f"Labels of the nodes of its {whose}, each with the values that will do; "
        "beside what the template asks for.",
    }


def _forms() -> Schema:
    resources = {
        "type": "object",
        "x-kubernetes-preserve-unknown-fields": True,
        "description": "Requests and limits of the first container.",
    }
    work = {name: _work()["properties"][name] for name in WORK}
    counts = {
        "minimum": _integer("Fewest workers of this form."),
        "maximum": _integer("Most workers of this form."),
    }
    form = object_schema(
        "One way to run the job: what it says goes before what the job says.",
        {
            "requires": _requires("workers"),
            "work": object_schema("What differs in its work.", work),
            "workers": object_schema(
                "What differs in its workers.", {**counts, "resources": resources}
            ),
            "parameterServers": object_schema(
                "What differs in its parameter servers.",
                {"resources": resources, "requires": _requires("parameter servers")},
            ),
        },
    )
    description = "Ways to run the job, of which it runs in one from its beginning to its end."
    return {
        "type": "array",
        "minItems": 1,
        "maxItems": 50,
        "items": form,
        "description": description,
    }


def _speeds() -> Schema:
    speeds = {
        "type": "object",
        "minProperties": 1,
        "maxProperties": 50,
        "additionalProperties": number_schema("", exclusiveMinimum=True),
        "description": "By value of the label, how many times as fast as the work says.",
    }
    return object_schema(
        "Forms that differ in the speed of their nodes alone, one for each value of a label.",
        {
            "label": text_schema("The label of nodes that tells their speed.")
            | {"pattern": f"^{LABEL_NAME.pattern}$"},
            "values": speeds,
        },
        ("label", "values"),
    )


SPEC_RULES = [
    _rule("!has(self.forms) || !has(self.speeds)", "expected either forms or speeds"),
    _rule(
        "!has(self.forms) || has(self.parameterServers)"
        " || self.forms.all(f, !has(f.parameterServers))",
        "forms: expected no parameterServers: the job has no template for them",
    ),
    _rule(
        "!has(self.work.chunks) || self.work.chunks >= self.workers.maximum",
        "work.chunks: expected at least workers.maximum",
    ),
    _rule(
        "!has(self.network) || self.resizePolicy == 'restart'"
        " || self.workers.minimum == self.workers.maximum"
        " || self.network.framework in ['none', 'torch']"
        " || (self.network.framework == 'tensorflow' && has(self.parameterServers))",
        "resizePolicy: expected restart: the processes of jax, and of tensorflow without "
        "parameterServers, cannot come and go",
    ),
]


def _network() -> Schema:
    return object_schema(
        "How its pods find each other: host names, a headless Service, and the variables of a "
        "framework; without it they have none of these.",
        {
            "framework": text_schema(
                "Whose variables the containers get beside ours (OASIS_...).",
                *FRAMEWORKS,
                default=FRAMEWORKS[0],
            ),
            "port": _integer("Where worker 0 waits for the others.")
            | {"maximum": LARGEST_PORT, "default": DEFAULT_PORT},
            "isolated": {
                "type": "boolean",
                "description": "Whether a NetworkPolicy lets only pods of this job connect to its "
                "pods.",
                "default": False,
            },
        },
    )


def _workers() -> Schema:
    return object_schema(
        "The workers; each is a pod.",
        {
            "minimum": _integer("It works with so many workers or more, or with none.")
            | {"default": 1},
            "initial": _integer(
                "Workers that policies without resizing give it; without this number, the maximum."
            ),
            "maximum": _integer("At most so many workers at a time."),
            "template": _template("worker"),
        },
        ("maximum", "template"),
        rules=[
            _rule("self.minimum <= self.maximum", "minimum: expected at most maximum"),
            _rule(
                "!has(self.initial) || (self.minimum <= self.initial"
                " && self.initial <= self.maximum)",
                "initial: expected minimum..maximum",
            ),
        ],
    )


def _spec() -> Schema:
    ps = object_schema(
        "The parameter servers, ceil(n b / B) for n workers that reserve b of the bandwidth B "
        "of one.",
        {"template": _template("parameter server")},
        ("template",),
    )
    return object_schema(
        "The job.",
        {
            "utility": _utility(),
            "utilityClassName": text_schema(
                "The UtilityClass that says how much it may claim. Default: the default class."
            ),
            "work": _work(),
            "workers": _workers(),
            "parameterServers": ps,
            "resizePolicy": text_schema(
                "elastic: pods come and go; restart: all pods are ended, with time for a "
                "checkpoint, and started again.",
                *RESIZE,
                default=RESIZE[0],
            ),
            "gracePeriodSeconds": _integer("Time for a checkpoint before a pod ends.", 0)
            | {"default": DEFAULT_GRACE},
            "onRejection": text_schema(
                "What becomes of it if it is not admitted: it fails, or is tried again later.",
                *ON_REJECTION,
                default=ON_REJECTION[0],
            ),
            "network": _network(),
            "completion": text_schema(
                "What ends it: its chief, the first worker, ends well; or its work is done, for "
                "pods that never end by themselves.",
                *COMPLETION,
                default=COMPLETION[0],
            ),
            "backoffLimit": _integer("So many pods and containers may fail, and no more.", 0)
            | {"default": BACKOFF_LIMIT},
            "forms": _forms(),
            "speeds": _speeds(),
        },
        REQUIRED,
        rules=SPEC_RULES,
    )


def _condition() -> Schema:
    return object_schema(
        "One side of its state.",
        {
            "type": text_schema("Which side."),
            "status": text_schema("Whether it is so.", "True", "False", "Unknown"),
            "reason": text_schema("Why, in one word."),
            "message": text_schema("Why, with the numbers."),
            "lastTransitionTime": TIME,
            "observedGeneration": _integer("Generation of the spec that it is about.", 0),
        },
        ("type", "status", "reason", "message", "lastTransitionTime"),
    )


def conditions_schema(description: str, by_controller: bool = False) -> Schema:
    """The schema of conditions, one of each type, or one of each type and controller."""
    item, keys = _condition(), ["type"]
    if by_controller:
        item["properties"]["controller"] = text_schema("Who says so, as namespace/name.")
        item["required"].append("controller")
        keys.append("controller")
    return {
        "type": "array",
        "items": item,
        "x-kubernetes-list-type": "map",
        "x-kubernetes-list-map-keys": keys,
        "description": description,
    }


def _counts(description: str) -> Schema:
    numbers = {"type": "integer"}
    return {"type": "object", "additionalProperties": numbers, "description": description}


def _slot() -> Schema:
    return object_schema(
        "What runs in one slot.",
        {
            "slot": _integer("The slot.", 0),
            "workers": _counts("Workers by node."),
            "parameterServers": _counts("Parameter servers by node."),
        },
    )


def _status() -> Schema:
    progress = object_schema(
        "Work done.",
        {
            "workerSeconds": number_schema("Counted while the whole gang was Running and Ready."),
            "total": number_schema("Worker-seconds in all."),
            "percent": _integer("Share that is done.", 0),
        },
    )
    resizes = object_schema(
        "Changes of a running gang.",
        {
            "count": _integer("How many.", 0),
            "restarts": _integer("How many of them ended all pods.", 0),
            "lastSeconds": number_schema("How long no work was done at the last one."),
            "seconds": number_schema("How long no work was done at all of them."),
            "costSeconds": number_schema("Work of the whole gang that the next one is to cost."),
        },
    )
    return object_schema(
        "What became of the job; written by the adapter alone.",
        {
            "phase": text_schema("Where it is; Running: its gang works.", *PHASES),
            "conditions": conditions_schema("Its sides."),
            "observedGeneration": _integer("Generation of the spec that was read last.", 0),
            "controller": text_schema(
                "The controller that schedules it, as namespace/name; others leave it alone."
            ),
            "arrivalSlot": _integer("Slot in which it arrived.", 0),
            "promisedCompletion": TIME | {"description": "When it was promised to be complete."},
            "promisedSlot": _integer("The slot of that.", 0),
            "completionSlot": _integer("The slot in which it completed.", 0),
            "utility": number_schema("What it earned."),
            "workers": _integer("Workers that it holds in this slot.", 0),
            "form": _integer("Index of the form that it runs in, in spec.forms or spec.speeds.", 0),
            "plan": {"type": "array", "items": _slot(), "description": "The next slots."},
            "progress": progress,
            "resizes": resizes,
        },
    )


# Phases of jobs that hold room: before their gang works, and then.
HOLDING = ("Starting", "Running")
PHASES = ("Pending", "Waiting", *HOLDING, "Completed", "Rejected", "GivenUp", "Invalid", "Failed")
# Invalid and Failed are no ends: an edit brings such a job back.
TERMINAL = frozenset({"Completed", "Rejected", "GivenUp"})


def custom_resource() -> dict[str, Any]:
    """The CustomResourceDefinition of ``OasisJob``, as plain data.

    Examples
    --------
    >>> custom_resource()["metadata"]["name"]
    'oasisjobs.oasis-scheduler.io'
    """
    columns = [
        ("Phase", "string", ".status.phase"),
        ("Workers", "integer", ".status.workers"),
        ("Done", "integer", ".status.progress.percent"),
        ("Promised", "date", ".status.promisedCompletion"),
        ("Utility", "number", ".status.utility"),
        ("Age", "date", ".metadata.creationTimestamp"),
    ]
    names = {"plural": PLURAL, "singular": SINGULAR, "kind": KIND, "shortNames": ["oj"]}
    meaning = "A distributed training job that is scheduled by what it is worth and when."
    return resource_definition(names, "Namespaced", meaning, columns, _spec(), _status())


def resource_definition(
    names: Mapping[str, Any],
    scope: str,
    meaning: str,
    columns: Sequence[tuple[str, str, str]],
    spec: Mapping[str, Any],
    status: Mapping[str, Any] | None = None,
) -> dict[str, Any]:
    """Return a CustomResourceDefinition of our group, as plain data.

    Parameters
    ----------
    names : mapping
        Its plural, singular and kind.
    scope : {"Namespaced", "Cluster"}
        Scope of its objects.
    meaning : str
        Description of its objects.
    columns : sequence of tuple of str
        Name, type and JSON path of each column that ``kubectl get`` prints.
    spec, status : mapping
        Schemas of the two parts; without `status` the objects have none.

    Examples
    --------
    >>> names = {"plural": "dogs", "singular": "dog", "kind": "Dog"}
    >>> made = resource_definition(names, "Cluster", "A dog.", [], {"type": "object"})
    >>> made["metadata"]["name"]
    'dogs.oasis-scheduler.io'
    """
    properties: dict[str, Any] = {
        "apiVersion": {"type": "string"},
        "kind": {"type": "string"},
        "metadata": {"type": "object"},
        "spec": spec,
    }
    version: dict[str, Any] = {"name": VERSION, "served": True, "storage": True}
    if status is not None:
        properties["status"] = status
        # With this subresource our writes of the status leave
        # the generation alone, which so tells the owner's edits.
        version["subresources"] = {"status": {}}
    version["schema"] = {"openAPIV3Schema": object_schema(meaning, properties, ("spec",))}
    version["additionalPrinterColumns"] = [
        {"name": name, "type": kind, "jsonPath": path} for name, kind, path in columns
    ]
    return {
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": {"name": f"{names['plural']}.{GROUP}"},
        "spec": {"group": GROUP, "scope": scope, "names": dict(names), "versions": [version]},
    }


__all__ = ["API_VERSION", "HOLDING", "PHASES", "TERMINAL", "custom_resource"]


def reference() -> str:
    """Tables of all fields, in Markdown.

    Examples
    --------
    >>> "| `spec.work.workerSeconds` | number |" in reference()
    True
    """
    version = custom_resource()["spec"]["versions"][0]
    parts = version["schema"]["openAPIV3Schema"]["properties"]
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
