"""``install`` prints what a controller needs."""

from __future__ import annotations

import pytest
import yaml

import oasis
from experiments.cli.commands.kubernetes import cluster, running

OF = cluster.ControllerOptions()


def test_what_one_controller_has_of_its_own_is_printed_alone(
    capsys: pytest.CaptureFixture[str],
) -> None:
    running.install(of=OF, image="oasis:1")
    whole = list(yaml.safe_load_all(capsys.readouterr().out))
    running.install(of=OF, image="oasis:1", own=True, spaces="team-a", monitored=True)
    made = list(yaml.safe_load_all(capsys.readouterr().out))
    kinds = {each["kind"] for each in made}
    assert kinds >= {"Namespace", "Deployment", "RoleBinding", "ServiceMonitor"}
    shared = {each["kind"] for each in whole if each not in made}
    assert shared >= {"CustomResourceDefinition", "ValidatingAdmissionPolicy"}
    assert not kinds & {"CustomResourceDefinition", "ValidatingAdmissionPolicy"}
    args = made[-3]["spec"]["template"]["spec"]["containers"][0]["args"]
    assert args[-1] == "--namespaced=team-a"


@pytest.mark.parametrize(
    ("argument", "message"),
    [
        ("--slot-seconds 10", "expected --name=value, got '--slot-seconds 10'"),
        ("--metrics-port=0", "expected none of "),
    ],
)
def test_an_argument_that_is_none_or_is_taken_is_refused(argument: str, message: str) -> None:
    with pytest.raises(oasis.InputError) as caught:
        running.install(of=OF, image="oasis:1", arguments=["--policy=fifo", argument])
    assert str(caught.value).startswith(f"--argument: {message}")


@pytest.mark.parametrize("image", ["", "a b"])
def test_an_image_has_a_name_without_blanks(image: str) -> None:
    with pytest.raises(oasis.InputError, match="--image: expected a name without blanks, got "):
        running.install(of=OF, image=image)
