"""From an ``OasisJob`` to the job that a policy plans with; whatever is wrong names its field."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field, fields, replace
from fractions import Fraction
from typing import Any

from oasis.driver.entry import Submission, form_begun_in
from oasis.kubernetes import names
from oasis.kubernetes.names import KIND
from oasis.kubernetes.objects.network import PodNetwork
from oasis.kubernetes.objects.node_affinity import NodeRules, narrowed
from oasis.kubernetes.objects.quantities import Amounts, ResourceMap, requests_of
from oasis.kubernetes.objects.schema import checked, checked_template, schema_of
from oasis.model.errors import InstanceError, describe, located_at
from oasis.model.forms import Form, Speeds
from oasis.model.groups import GROUPS, TaskGroup
from oasis.model.job import Job
from oasis.model.resources import BANDWIDTH
from oasis.model.utility import Constant, Deadline, Piecewise, Sigmoid, Utility
from oasis.model.validation import check_keys, number

DEFAULT_GRACE = 30
UTILITY_FIELDS = {  # by kind; as in an instance, but in seconds
    "sigmoid": ("priority", "decayPerSecond", "targetSeconds"),
    "constant": ("value",),
    "deadline": ("value", "deadlineSeconds"),
    "piecewise": ("delaysSeconds", "values"),
}
# A node name bypasses the scheduler, and a second
# gate would hold the gang after ours has opened.
DECIDED = ("nodeName", "schedulingGates")
BY_MINIBATCH = ("epochs", "chunks", "minibatches", "minibatchSeconds")  # what work consists of


@dataclass(slots=True)
class SlotClock:
    """Slots of steady time, which changes of the system time do not affect."""

    slot_seconds: float
    # Part of a slot that may pass before the pods that were started at its beginning work: a worker
    # that runs for the rest has done a worker-slot. It is never credited with more than that.
    startup_seconds: float = 0.0
    epoch: float = 0.0  # begin of slot 0, in seconds since 1970
    drift: float = 0.0  # so much later are the times that people read: the clock was set by it

    def __post_init__(self) -> None:
        number(self.slot_seconds, "slot_seconds", above=True)
        number(self.startup_seconds, "startup_seconds")
        if self.startup_seconds >= self.slot_seconds:
            expected = f"expected less than a slot, {self.slot_seconds:g}"
            raise InstanceError("startup_seconds", f"{expected}, got {self.startup_seconds:g}")

    @property
    def work_seconds(self) -> float:
        """Seconds of work in a worker-slot: a slot less the time in which pods start."""
        return self.slot_seconds - self.startup_seconds

    def slot(self, time: float) -> int:
        """Return the slot at `time`; negative before slot 0."""
        return int((time - self.epoch) // self.slot_seconds)

    def begin(self, slot: int) -> float:
        """Return the time at which `slot` begins."""
        return self.epoch + slot * self.slot_seconds

    def wall(self, time: float) -> float:
        """Convert `time` from the steady clock to what the system clock shows."""
        return time + self.drift


@dataclass(frozen=True, slots=True, eq=False, kw_only=True)
class JobSpec(Submission):
    """A job as read from a valid ``OasisJob``, or from a valid object of another kind."""

    # Its first worker, or a controller of another kind, says its end; else its work does.
    ends_itself: bool = True
    namespace: str
    name: str
    worker: Mapping[str, Any] = field(default_factory=dict)  # pod template
    ps: Mapping[str, Any] | None = None  # None: no parameter servers
    # What a pod asks of its node, in the cluster's units.
    worker_requests: Mapping[str, Fraction] = field(default_factory=dict)
    ps_requests: Mapping[str, Fraction] = field(default_factory=dict)
    grace_seconds: int = DEFAULT_GRACE  # that pods have to write a checkpoint before they end
    backoff_limit: int = 6  # failures of its pods and containers, after which it fails
    kind: str = KIND  # of the object
    # Which replicated jobs of an object of another kind are the workers, and which the parameter
    # servers if there are any; empty where there is only one template.
    part_names: tuple[str, str | None] = ("", None)
    rules: Mapping[TaskGroup, NodeRules] = field(default_factory=dict)  # of groups with a template
    network: PodNetwork | None = None  # how its pods find each other; None: they do not
    utility_class: str | None = None  # that it names
    forms: tuple[JobSpec, ...] = ()  # the job in each, as if it had no others; empty: it has one

    @property
    def id(self) -> str:
        """``namespace/name``; of other kinds than ours ``namespace/kind/name``."""
        return job_id(self.kind, self.namespace, self.name)

    @property
    def in_forms(self) -> tuple[JobSpec, ...]:
        """The job in each of its forms; the job alone if it has one form."""
        return self.forms or (self,)

    def needs_ps(self, job: Job) -> bool:
        """Return whether the job has parameter servers in the form `job`."""
        return job.needs_ps if self.ps_count is None else self.ps_count > 0

    def begun_in(self, form: int) -> JobSpec:
        """Return the job in the form in which it began, the one with index `form`."""
        return form_begun_in(self.in_forms, form, "spec.forms")

    @property
    def min_workers(self) -> int:
        """Smallest number of workers with which the job runs."""
        return self.job.min_workers

    @property
    def is_existing(self) -> bool:
        """Whether a controller of another kind creates the pods and declares completion."""
        return self.kind != KIND


def job_id(kind: str, namespace: str, name: str) -> str:
    """Return ``namespace/name`` of an OasisJob, ``namespace/kind/name`` of other kinds."""
    return f"{namespace}/{name}" if kind == KIND else f"{namespace}/{kind.lower()}/{name}"


def parse_job(item: Mapping[str, Any], clock: SlotClock, resources: ResourceMap) -> JobSpec:
    """Read an ``OasisJob`` in all its forms; an `InstanceError` names a wrong field."""
    with located_at("spec"):
        spec = checked(schema_of(KIND)["spec"], item.get("spec") or {})
        job_as_written = _in_one_form(item["metadata"], spec, clock, resources)
        # A policy that does not resize takes the number that its owner wrote for the job as it is.
        own = {**spec, "workers": {k: v for k, v in spec["workers"].items() if k != "initial"}}
        forms = []
        for path, form in _forms(spec):
            with located_at(path), _as_a_form_says_it(path):
                in_form = _in_form(own, form)
                forms.append(_in_one_form(item["metadata"], in_form, clock, resources))
    if not forms:
        return job_as_written
    names_of_form = [one.name for one in fields(Form)]
    each = ({name: getattr(form.job, name) for name in names_of_form} for form in forms)
    job = replace(job_as_written.job, forms=tuple(Form(**form_fields) for form_fields in each))
    return replace(job_as_written, job=job, forms=tuple(forms))


def _in_one_form(
    meta: Mapping[str, Any], spec: Mapping[str, Any], clock: SlotClock, resources: ResourceMap
) -> JobSpec:
    """Read a job from its spec, without its other forms; an `InstanceError` names a wrong field."""
    workers = spec["workers"]
    minimum, initial, maximum = workers["minimum"], workers.get("initial"), workers["maximum"]
    if minimum > maximum:
        raise InstanceError("workers.minimum", f"expected at most maximum ({maximum})", minimum)
    if initial is not None and not minimum <= initial <= maximum:  # of a file, too
        raise InstanceError("workers.initial", f"expected {minimum}..{maximum}", initial)
    network = PodNetwork(**spec["network"]) if "network" in spec else None
    decided = DECIDED if network is None else (*DECIDED, "hostname", "subdomain")
    templates = {TaskGroup.WORKER: (workers.get("template"), "workers.template")}
    if "parameterServers" in spec:
        template = spec["parameterServers"]["template"]
        templates[TaskGroup.PS] = template, "parameterServers.template"
    for template, path in templates.values():
        if "spec" not in template:
            raise InstanceError(path, "expected a pod template with a spec", template)
        for name in decided:
            if template["spec"].get(name):
                who = "the plan" if name in DECIDED else "spec.network"
                raise InstanceError(f"{path}.spec.{name}", f"expected nothing: {who} decides on it")
    return job_spec(
        meta,
        templates,
        resources,
        clock,
        counts=(minimum, maximum),
        utility=parse_utility(spec["utility"], clock),
        work=("work", spec["work"]),
        generation=int(meta.get("generation", 1)),
        initial_workers=initial,
        resize=_resize(spec, network, TaskGroup.PS in templates, minimum < maximum),
        grace_seconds=spec["gracePeriodSeconds"],
        on_rejection=spec["onRejection"],
        ends_itself=spec["completion"] == "chief",
        ps_count=None if TaskGroup.PS in templates else 0,  # none is made without a template
        backoff_limit=spec["backoffLimit"],
        network=network,
        utility_class=spec.get("utilityClassName"),
    )


def _forms(spec: Mapping[str, Any]) -> list[tuple[str, Mapping[str, Any]]]:
    """Return the forms of a job, each after its path; a speed makes one that differs in time."""
    forms, speeds, work = spec.get("forms"), spec.get("speeds"), spec["work"]
    if forms is not None and speeds is not None:
        raise InstanceError("speeds", "expected either speeds or forms, not both")
    if speeds is None:
        return [(f"forms[{k}]", form) for k, form in enumerate(forms or ())]
    with located_at("speeds"):
        table = Speeds(**speeds)
    placed: list[tuple[str, Mapping[str, Any]]] = []
    for value, speed in table.values.items():
        timed = work.keys() & {"workerSeconds", "minibatchSeconds"}
        form = {"requires": {table.label: [value]}, "work": {k: work[k] / speed for k in timed}}
        placed.append((f"speeds.values.{value}", form))
    return placed


def _in_form(own: Mapping[str, Any], form: Mapping[str, Any]) -> dict[str, Any]:
    """Return the spec `own` of a job with the fields that `form` states in place of its own."""
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


def _pods(own: Mapping[str, Any], changes: Mapping[str, Any]) -> dict[str, Any]:
    """Return the workers or parameter servers of a spec with the fields in `changes` replaced."""
    pods = {**own, **{name: changes[name] for name in ("minimum", "maximum") if name in changes}}
    if "resources" in changes:
        first, *others = pods["template"]["spec"]["containers"]
        containers = [{**first, "resources": changes["resources"]}, *others]
        pods["template"] = _with_spec(pods["template"], containers=containers)
    return _on_nodes(pods, changes) if "requires" in changes else pods


def _on_nodes(own: dict[str, Any], form: Mapping[str, Any]) -> dict[str, Any]:
    """Return the pods `own` restricted to nodes that have the labels `form` requires."""
    requirements = [
        {"key": name, "operator": "In", "values": list(values)}
        for name, values in form["requires"].items()
    ]
    if not requirements:
        return own
    affinity = narrowed(own["template"]["spec"].get("affinity"), requirements, "matchExpressions")
    return {**own, "template": _with_spec(own["template"], affinity=affinity)}


def _with_spec(template: Mapping[str, Any], **changes: Any) -> dict[str, Any]:
    return {**template, "spec": {**template["spec"], **changes}}


def job_spec(
    meta: Mapping[str, Any],
    templates: Mapping[TaskGroup, tuple[Any, str]],
    resources: ResourceMap,
    clock: SlotClock,
    *,
    counts: tuple[int, int],
    utility: Utility,
    work: tuple[str, Any],
    kind: str = KIND,
    **rest: Any,
) -> JobSpec:
    """Build a job from the pod templates of its groups and its work; errors name their fields."""
    # The `counts` are fewest and most workers, the `rest` fields of `JobSpec`.
    specs = {group: checked_template(*template)["spec"] for group, template in templates.items()}
    requests: dict[TaskGroup, Amounts] = {TaskGroup.PS: {}}
    requests |= {group: requests_of(spec) for group, spec in specs.items()}
    worker, ps = (resources.amounts(requests[group]) for group in GROUPS)
    # The model would ask for parameter servers wherever workers reserve bandwidth.
    if TaskGroup.PS not in templates:
        worker.pop(BANDWIDTH, None)
    place, values = work
    with named_as_written(place, values, f"{templates[TaskGroup.WORKER][1]}.spec", resources):
        job = Job(
            id=job_id(kind, meta["namespace"], meta["name"]),
            arrival=0,
            chunks=counts[1],
            worker=worker,
            ps=ps,
            utility=utility,
            min_workers=counts[0],
            **parse_work(values, counts[1], clock, place),
        )
        job.work(clock.work_seconds)
    return JobSpec(
        uid=meta["uid"],
        namespace=meta["namespace"],
        name=meta["name"],
        job=job,
        worker=templates[TaskGroup.WORKER][0],
        ps=templates.get(TaskGroup.PS, (None, ""))[0],
        worker_requests=requests[TaskGroup.WORKER],
        ps_requests=requests[TaskGroup.PS],
        rules={group: NodeRules.of(spec) for group, spec in specs.items()},
        kind=kind,
        **rest,
    )


def identity(name: str, uid: str, task: str | None = None) -> dict[str, str]:
    """Return the labels of the pods of a job, or only of those of its group `task`."""
    # A label holds 63 characters and ends with a letter or a digit; the uid tells what is cut off.
    labels = {names.JOB_NAME: name[:63].rstrip("-."), names.JOB_UID: uid}
    return labels if task is None else {**labels, names.TASK: str(task)}


def _resize(spec: Mapping[str, Any], network: PodNetwork | None, has_ps: bool, ranges: bool) -> str:
    """Return the resize policy, elastic or restart; raise if elastic is impossible."""
    resize: str = spec["resizePolicy"]
    if network is None or resize == "restart":
        return resize
    if ranges and not network.can_resize(has_ps):
        framework = network.framework + " without parameterServers" * (network.framework != "jax")
        expected = f"expected restart: the processes of {framework} cannot come and go"
        raise InstanceError("resizePolicy", expected, resize)
    # A gang of a fixed number has fixed ranks, which a pod that moves would leave.
    return resize if ranges else "restart"


@contextmanager
def named_as_written(work: str, values: Any, worker: str, resources: ResourceMap) -> Iterator[None]:
    """Make errors in fields of the model name the fields of the object they follow from."""
    # `work` is the place of the work, at which `values` stand; `worker` that of a worker's spec.
    bandwidth = {name: resource for name, resource, _ in resources.entries}.get(BANDWIDTH, "")
    whole = isinstance(values, Mapping) and "workerSeconds" in values
    of_work = {
        "minibatch_time": "workerSeconds" if whole else "minibatchSeconds",
        "gradient_mb": "gradientMb",
    }
    try:
        yield
    except InstanceError as error:
        if error.field in of_work:
            name = of_work[error.field]
            error.field, error.got = f"{work}.{name}", describe(values[name])
        elif error.field == f"worker.{BANDWIDTH}":
            error.field = f"{worker}.containers[0].resources.requests.{bandwidth}"
        raise


@contextmanager
def _as_a_form_says_it(path: str) -> Iterator[None]:
    """Make errors in the spec of a form name the field of the form at `path`."""
    try:
        yield
    except InstanceError as error:
        inner = error.field.replace(".template.spec.containers[0].resources", ".resources")
        error.field = "" if path.startswith("speeds.") else inner
        raise


def parse_utility(data: Any, clock: SlotClock, path: str = "utility") -> Utility:
    """Parse the utility of an ``OasisJob``, in seconds, into one by delay in slots."""
    seconds = clock.slot_seconds
    with located_at(path):
        data = checked(schema_of(KIND)["spec"]["properties"]["utility"], data)
        kind = data["kind"]
        check_keys(data, ("kind", *UTILITY_FIELDS[kind]))
        if kind == "sigmoid":
            decay, target = data["decayPerSecond"] * seconds, data["targetSeconds"] / seconds
            return Sigmoid(data["priority"], decay, target)
        if kind == "deadline":
            return Deadline(data["value"], data["deadlineSeconds"] / seconds)
        if kind == "constant":
            return Constant(data["value"])
        delays = [delay / seconds for delay in data["delaysSeconds"]]
        for k in range(1, len(delays)):
            if delays[k] <= delays[k - 1]:
                raise InstanceError(f"delaysSeconds[{k}]", "expected strictly increasing delays")
        return Piecewise(tuple(delays), data["values"])


def parse_work(data: Any, maximum: int, clock: SlotClock, path: str = "work") -> dict[str, Any]:
    """Return minibatches or worker-seconds as fields of `Job`; `maximum`: most workers."""
    # Most workers, the `maximum`, are the chunks of the model.
    with located_at(path):
        data = checked(schema_of(KIND)["spec"]["properties"]["work"], data)
        if "workerSeconds" in data:
            check_keys(data, ("workerSeconds",))
            # The model has a chunk for each worker of the maximum, and each is one mini-batch of
            # this length: together they are the work that was asked for.
            slots = data["workerSeconds"] / clock.work_seconds / maximum
            return {"epochs": 1, "minibatches": 1, "minibatch_time": slots, "gradient_mb": 0.0}
        check_keys(data, BY_MINIBATCH, ("gradientMb",))
        # N_i also caps the workers of the model: the chunks beyond `maximum` become minibatches
        chunks = data["chunks"]
        if chunks < maximum:
            raise InstanceError(
                "chunks", f"expected at least workers.maximum ({maximum}), got {chunks}"
            )
        share = chunks / maximum
        return {
            "epochs": data["epochs"],
            "minibatches": data["minibatches"],
            "minibatch_time": data["minibatchSeconds"] / clock.work_seconds * share,
            "gradient_mb": data.get("gradientMb", 0.0) * share,
        }


def as_it_was(submission: Submission, spec: JobSpec | None) -> JobSpec:
    """Return the job as the policy knows it, with pod templates of `spec`; None: it was deleted."""
    # It follows from what a checkpoint has of it, and from the templates of the job as it is now;
    # None if it is gone.
    known: dict[str, Any] = {one.name: getattr(submission, one.name) for one in fields(Submission)}
    if spec is not None:
        return replace(spec, **known)
    namespace, _, name = submission.job.id.rpartition("/")
    return JobSpec(namespace=namespace, name=name, **known)
