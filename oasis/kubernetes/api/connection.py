"""HTTP to an API server, with retries of our own in place of the official client's."""

from __future__ import annotations

import json
import random
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from urllib.parse import urlencode

import urllib3
from kubernetes import client, config
from yaml import YAMLError

from oasis.kubernetes.names import GROUP
from oasis.model.errors import InputError, OasisError


class ApiError(OasisError):
    """The server answered without success; `reason` is its word for that, such as ``Conflict``."""

    def __init__(
        self,
        method: str,
        path: str,
        status: int,
        reason: str,
        message: str,
        retry_after: float | None = None,
    ) -> None:
        self.advice = _advice(message, path, status)
        self.cause = f"{status} {reason}: {message}{self.advice}"
        super().__init__(f"{method} {path}: {self.cause}")
        self.status, self.reason, self.message = status, reason, message
        self.retry_after = retry_after


class LostAnswerError(OasisError):
    """No answer came: the request may have been carried out, unless it was `never_sent`."""

    def __init__(self, method: str, path: str, message: str, never_sent: bool = False) -> None:
        self.advice = _advice(message)
        self.cause = f"no answer: {message}{self.advice}"
        super().__init__(f"{method} {path}: {self.cause}")
        self.never_sent = never_sent


class TooLateError(OasisError):
    """A request was not made, or not repeated, because its time had run out."""

    def __init__(self, method: str, path: str) -> None:
        why = "not sent: the lease, or the time for renewing it, has run out"
        super().__init__(f"{method} {path}: {why}")


# What to do, by words of an error that does not go away by itself.
REMEDIES: dict[str, str] = json.loads(
    Path(__file__).with_name("advice.json").read_text(encoding="utf-8")
)


def _advice(message: str, path: str = "", status: int = 0) -> str:
    """Return the remedy for an error; empty if the error may pass by itself."""
    # Of all that may be forbidden, rights are what installing gives: it says who cannot do what.
    rights = status == 403 and " cannot " in message
    if rights or (status == 404 and path.startswith(f"/apis/{GROUP}/") and "page" in message):
        message = "not installed"
    return next((f"; {remedy}" for words, remedy in REMEDIES.items() if words in message), "")


def parsed_error(
    method: str, path: str, status: int, content: bytes, headers: Mapping[str, Any]
) -> ApiError:
    """Return the error of an answer, whose body may be a Status object or plain text."""
    reason, message = "", content.decode("utf-8", "replace").strip()[:300]
    try:
        answer = json.loads(content)
    except ValueError:
        answer = None
    if isinstance(answer, dict):
        reason, message = str(answer.get("reason") or ""), str(answer.get("message") or "")
    return ApiError(method, path, status, reason, message, _seconds(headers.get("Retry-After")))


def _seconds(value: Any) -> float | None:
    """Return Retry-After in seconds; None if it is missing or a date, which servers do not send."""
    try:
        return max(0.0, float(value))
    except (TypeError, ValueError):
        return None


# These say something about the server. A 403, 409 or 422 is about the request and would come again.
RETRIED = frozenset({429, 500, 502, 503, 504})
# Connections: 16 writers, six watches, the lease and the controller itself fit by default.
POOL = 32


@dataclass(frozen=True, slots=True)
class RetryParams:
    """Settings of repeated requests: each wait is twice the one before, half of it random."""

    attempts: int = 5  # at most
    first_wait: float = 0.05  # seconds, as all the others
    longest_wait: float = 3.0
    timeout: float = 10.0  # of one attempt


# What the library raises for a kubeconfig: it does not check what the file holds.
_BAD_FILE = (
    *(config.ConfigException, OSError, YAMLError),
    *(ValueError, TypeError, LookupError, AttributeError),
)


def _follow_token(configuration: Any, kubeconfig: str | None, context: str | None) -> None:
    """Read the ``tokenFile`` of a kubeconfig again when it is needed: it may be rotated."""
    known = config.kube_config
    contents = known.KubeConfigMerger(kubeconfig or known.KUBE_CONFIG_DEFAULT_LOCATION).config
    chosen = contents["contexts"].get_with_name(context or contents["current-context"])["context"]
    entry = contents["users"].get_with_name(chosen["user"], safe=True) if "user" in chosen else None
    if entry is None or "tokenFile" not in entry["user"]:
        return
    user = entry["user"]
    file = Path(user.path).absolute().parent / user["tokenFile"]

    def refresh(settings: Any) -> None:
        token = f"Bearer {file.read_text(encoding='utf-8').strip()}"
        settings.api_key.update(dict.fromkeys(settings.api_key, token))

    configuration.refresh_api_key_hook = refresh


class Connection:
    """Sends requests to an API server; bodies and answers are plain dictionaries.

    Parameters
    ----------
    configuration : kubernetes.client.Configuration
        Address, certificates and token of the official client.
    params : RetryParams, optional
        How often a request is repeated, and how long it may take.

    Raises
    ------
    ValueError
        If the address is none.

    Examples
    --------
    >>> Connection(client.Configuration("http://127.0.0.1:8001")).host
    'http://127.0.0.1:8001'
    """

    def __init__(self, configuration: Any, params: RetryParams | None = None) -> None:
        self.params = params or RetryParams()
        self._configuration = configuration
        self._configuration.retries = False
        self._configuration.connection_pool_maxsize = POOL
        manager = client.ApiClient(configuration).rest_client.pool_manager
        self._server, self._prefix = manager, configuration.host.rstrip("/")
        try:
            manager.connection_from_url(configuration.host)
        except urllib3.exceptions.LocationValueError:
            expected = "expected an address such as https://host:6443"
            raise InputError("server", expected, configuration.host) from None
        self._random = random.Random(0)
        # Called with method, status and seconds of each attempt; status 0: no answer.
        self.on_attempt: Callable[[str, int, float], None] | None = None
        self.stopping = threading.Event()

    @classmethod
    def open(
        cls,
        kubeconfig: str | None = None,
        context: str | None = None,
        params: RetryParams | None = None,
    ) -> Connection:
        """Connect as kubectl does; within a pod, as its service account.

        Parameters
        ----------
        kubeconfig, context : str, optional
            A file, and one of its contexts; left out, what kubectl would take.
        params : RetryParams, optional
            As in the constructor.

        Raises
        ------
        ValueError
            If they name no cluster.
        """
        configuration = client.Configuration()
        try:
            try:
                # A file of the user is read, not written: tokens
                # that were renewed are not put back into it.
                config.load_kube_config(kubeconfig, context, configuration, persist_config=False)
                _follow_token(configuration, kubeconfig, context)
            except config.ConfigException:
                # Whoever names a file or a context does not
                # mean the cluster in which this pod runs.
                if kubeconfig or context:
                    raise
                config.load_incluster_config(configuration)
        except _BAD_FILE as error:
            place = kubeconfig or config.kube_config.KUBE_CONFIG_DEFAULT_LOCATION or "no file"
            expected = f"expected a cluster in {place}: set KUBECONFIG or pass --kubeconfig"
            raise InputError("kubeconfig", f"{expected} ({error})") from None
        return cls(configuration, params)

    @property
    def host(self) -> str:
        """Address of the API server."""
        return str(self._configuration.host)

    def request(
        self, method: str, path: str, *, left: Callable[[], float] | None = None, **sent: Any
    ) -> dict[str, Any]:
        """Make a request, and again after errors that may pass; `left` gives seconds for it."""
        # With `left`, seconds by which an attempt that begins now has to be over, none begins once
        # they are used up. What is `sent` are ``body``, ``query`` and ``content_type``.
        for attempt in range(self.params.attempts):
            last = attempt == self.params.attempts - 1
            timeout = self.params.timeout if left is None else min(self.params.timeout, left())
            if timeout <= 0.0:
                raise TooLateError(method, path)
            try:
                return self._attempt(method, path, timeout, **sent)
            except ApiError as error:
                if last or error.status not in RETRIED:
                    raise
                wait = error.retry_after
            except LostAnswerError as error:
                # A POST without an answer may have made the object, which
                # `Objects.create` finds out. The other methods may be repeated:
                # they name a version or a uid, or end in the same state.
                if last or (method == "POST" and not error.never_sent):
                    raise
                wait = None
            self._pause(attempt, wait)
        raise AssertionError("unreachable: the last attempt returns or raises")

    def stream(
        self,
        path: str,
        query: Mapping[str, Any],
        timeout: float,
        on_open: Callable[[], None] = lambda: None,
    ) -> Iterator[dict[str, Any]]:
        """Yield the events of a watch until the server ends it; call `on_open` when it answers."""
        # `on_open` is called once the server has begun to answer, perhaps long before an event.
        response = self._send("GET", path, timeout, query=query)
        try:
            if response.status != 200:
                raise parsed_error("GET", path, response.status, response.read(), response.headers)
            on_open()
            pending = b""
            for chunk in response.stream(65536, decode_content=True):
                *lines, pending = (pending + chunk).split(b"\n")
                for line in lines:
                    if line.strip():
                        yield json.loads(line)
        except (urllib3.exceptions.HTTPError, OSError, ValueError) as error:
            raise LostAnswerError("GET", path, str(error)) from None
        finally:
            response.close()

    def _attempt(self, method: str, path: str, timeout: float, **sent: Any) -> dict[str, Any]:
        """Send a request once; return the answer, or raise the error that it is."""
        begin, status = time.monotonic(), 0
        try:
            response = self._send(method, path, timeout, **sent)
            status = response.status
            content = response.read()
            response.release_conn()
            if not 200 <= status < 300:
                raise parsed_error(method, path, status, content, response.headers)
            answer = json.loads(content)
        except (urllib3.exceptions.HTTPError, OSError, ValueError) as error:
            raise LostAnswerError(method, path, str(error)) from None
        finally:
            if self.on_attempt is not None:
                self.on_attempt(method, status, time.monotonic() - begin)
        return answer if isinstance(answer, dict) else {"items": answer}

    def _send(
        self,
        method: str,
        path: str,
        timeout: float,
        *,
        body: Any = None,
        query: Mapping[str, Any] | None = None,
        content_type: str = "application/json",
    ) -> Any:
        headers = {"Accept": "application/json", "User-Agent": "oasis-scheduler"}
        headers |= self._authorization()
        if body is not None:
            headers["Content-Type"] = content_type
        target = self._prefix + path + (f"?{urlencode(query)}" if query else "")
        try:
            return self._server.urlopen(
                method,
                target,
                body=None if body is None else json.dumps(body),
                headers=headers,
                preload_content=False,
                retries=False,
                timeout=urllib3.Timeout(connect=min(5.0, timeout), read=timeout),
            )
        except (urllib3.exceptions.HTTPError, OSError) as error:
            # Where no connection was made, even a POST may be repeated.
            never_sent = isinstance(error, urllib3.exceptions.NewConnectionError)
            raise LostAnswerError(method, path, str(error), never_sent) from None

    def _authorization(self) -> dict[str, str]:
        """Return the authorization header, which changes: tokens are renewed while we run."""
        return {
            setting["key"]: setting["value"]
            for setting in self._configuration.auth_settings().values()
            if setting["in"] == "header" and setting["value"]
        }

    def _pause(self, attempt: int, wait: float | None) -> None:
        params = self.params
        if wait is None:
            # Half of the wait is random, so that writers that
            # were refused together do not come back together.
            wait = params.first_wait * 2**attempt * (0.5 + 0.5 * self._random.random())
        self.stopping.wait(min(wait, params.longest_wait))
