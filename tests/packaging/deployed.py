"""``python -m tests.packaging.deployed`` makes anew what is made under deploy/.

`oasis.kubernetes.objects.manifests` is the one place that knows what is installed. The chart's
templates are its objects, in which values stand as Helm takes them.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import yaml

from experiments.cli.commands.kubernetes import installing
from experiments.cli.commands.kubernetes.installing import yaml_text
from experiments.evaluation.policies import POLICIES
from oasis.kubernetes.objects.manifests import everything
from oasis.kubernetes.objects.namespaced import namespaced
from oasis.version import __version__

DEPLOY = Path(__file__).parents[2] / "deploy"

NAMESPACE, NAME, SPACE = "{{ $.Release.Namespace }}", "{{ $.Values.name }}", "{{ $namespace }}"
IMAGE = '{{ .Values.image | default (printf "oasis-scheduler:%s" .Chart.AppVersion) }}'
ARGUMENTS = ("HELM_POLICY", "--slot-seconds={{ .Values.slotSeconds }}")
TAKEN = ("policy", "slot-seconds", *(flag.removeprefix("--") for flag in installing.TAKEN))
# What is no text, or a line that Helm replaces by several or by none: the words on the left stand
# for it until the objects are written down.
HELM = {
    "- HELM_POLICY": """\
{{- with .Values.policy }}
        - --policy={{ . }}
        {{- end }}""",
    "- HELM_ARGUMENTS": f"""\
{{{{- range .Values.extraArgs }}}}
        {{{{- if regexMatch "^--({"|".join(TAKEN)})(=|$)" . }}}}
        {{{{- fail (printf "extraArgs: expected no option that the chart gives itself: %s" .) }}}}
        {{{{- end }}}}
        - {{{{ quote . }}}}
        {{{{- end }}}}
        {{{{- with .Values.namespaces }}}}
        - --namespaced={{{{ join "," . }}}}
        {{{{- end }}}}""",
    "HELM_REPLICAS": "{{ .Values.replicas }}",
    " HELM_RESOURCES": "\n          {{- toYaml .Values.resources | nindent 10 }}",
    "HELM_POD: null": """\
{{- with .Values.pod }}
      {{- toYaml . | nindent 6 }}
      {{- end }}""",
    "HELM_LABELS: null": """\
{{- with .Values.serviceMonitor.labels }}
    {{- toYaml . | nindent 4 }}
    {{- end }}""",
    "HELM_KEEP": '{{ .Values.crds.keep | ternary (dict "helm.sh/resource-policy" "keep") dict'
    " | toJson }}",
}
CONDITIONS = {
    "PodDisruptionBudget": "if .Values.podDisruptionBudget",
    "Service": "if .Values.serviceMonitor.enabled",
    "ServiceMonitor": "if .Values.serviceMonitor.enabled",
    "ClusterRole": "if not .Values.namespaces",
}


def files() -> dict[Path, str]:
    """The text of each file that is made."""
    objects = everything(NAMESPACE, IMAGE, (*ARGUMENTS, "HELM_ARGUMENTS"), NAME, monitored=True)
    shared, own = [], []
    for body in objects:
        meta = body["metadata"]
        if body["kind"] == "Namespace":  # Helm's own: --create-namespace
            continue
        if NAMESPACE in (meta.get("namespace"), meta["name"].partition(":")[0]):
            own.append(template(with_values(body), CONDITIONS.get(body["kind"], "")))
        else:
            meta["annotations"] = "HELM_KEEP"
            shared.append(body)
    for body in namespaced(objects, [SPACE]):
        if body not in objects:
            outside = body["kind"] == "ClusterRole"
            loop = "if .Values.namespaces" if outside else "range $namespace := .Values.namespaces"
            own.append(template(body, loop))
    chart, templates = DEPLOY / "chart", DEPLOY / "chart" / "templates"
    return {
        DEPLOY / "oasis.yaml": yaml_text(everything()),
        chart / "Chart.yaml": yaml.safe_dump(chart_of(), sort_keys=False, width=100),
        chart / "values.schema.json": json.dumps(schema(), indent=1) + "\n",
        templates / "shared.yaml": "{{- if .Values.crds.enabled }}\n"
        + in_helm(yaml_text(shared))
        + "{{- end }}\n",
        templates / "controller.yaml": "".join(own),
    }


def with_values(body: dict[str, Any]) -> dict[str, Any]:
    """An object of the controller with values where the chart has some."""
    spec = body.get("spec", {})
    if body["kind"] == "Deployment":
        spec["replicas"] = "HELM_REPLICAS"
        pod = spec["template"]["spec"]
        pod["containers"][0]["resources"] = "HELM_RESOURCES"
        pod["HELM_POD"] = None
    elif body["kind"] == "ServiceMonitor":
        spec["endpoints"][0]["interval"] = "{{ .Values.serviceMonitor.interval }}"
        body["metadata"]["labels"]["HELM_LABELS"] = None
    return body


def template(body: dict[str, Any], condition: str) -> str:
    """An object as a document of a template."""
    text = "---\n" + in_helm(yaml.safe_dump(body, sort_keys=False, width=1000))
    return f"{{{{- {condition} }}}}\n{text}{{{{- end }}}}\n" if condition else text


def in_helm(text: str) -> str:
    """YAML in which the words of `HELM` are replaced."""
    for word, helm in HELM.items():
        text = text.replace(word, helm)
    return text


def chart_of() -> dict[str, Any]:
    return {
        "apiVersion": "v2",
        "name": "oasis-scheduler",
        "description": "Schedules training jobs by what they are worth and when.",
        "type": "application",
        "version": __version__,
        "appVersion": __version__,
        "kubeVersion": ">=1.30.0-0",
    }


def schema() -> dict[str, Any]:
    """Schema of each value."""
    name = {"type": "string", "pattern": "^[a-z0-9]([-a-z0-9]{0,38}[a-z0-9])?$"}
    given = ("serviceAccountName", "securityContext", "containers", "volumes")

    def fields(**properties: Any) -> dict[str, Any]:
        return {"type": "object", "additionalProperties": False, "properties": properties}

    found = fields(
        name=name,
        image={"type": "string", "pattern": "^[^\\s'\"]*$"},
        namespaces={"type": "array", "items": {**name, "maxLength": 63}, "uniqueItems": True},
        replicas={"type": "integer", "minimum": 0},
        policy={"type": "string", "enum": ["", *POLICIES]},
        slotSeconds={"type": "number", "exclusiveMinimum": 0},
        extraArgs={"type": "array", "items": {"type": "string"}},
        resources={"type": "object"},
        pod={"type": "object", "properties": dict.fromkeys(given, False)},
        podDisruptionBudget={"type": "boolean"},
        serviceMonitor=fields(
            enabled={"type": "boolean"},
            interval={"type": "string", "pattern": "^([0-9]+(ms|[smhdwy]))+$"},
            labels={"type": "object", "additionalProperties": {"type": "string"}},
        ),
        crds=fields(enabled={"type": "boolean"}, keep={"type": "boolean"}),
    )
    found["required"] = ["name", "replicas", "slotSeconds"]  # null takes a default away
    found["properties"]["global"] = {"type": "object"}  # Helm's own, of a chart within another
    return {"$schema": "https://json-schema.org/draft/2020-12/schema", **found}


if __name__ == "__main__":
    for path, text in files().items():
        path.write_text(text, encoding="utf-8")
