"""Readiness of servers, asked over HTTP without any client library."""

from __future__ import annotations

import ssl
import urllib.error
import urllib.request
from pathlib import Path

_SECONDS = 5


def answers(url: str, authority: Path | None = None, token: str = "") -> bool:
    """Whether `url` answers with 200. Without an `authority`, any certificate will do: those that
    the scheduler and others make for themselves are signed by nobody."""
    headers = {"Authorization": f"Bearer {token}"} if token else {}
    tls = ssl.create_default_context(cafile=str(authority)) if authority else _trusting()
    request = urllib.request.Request(url, headers=headers)
    try:
        with urllib.request.urlopen(request, context=tls, timeout=_SECONDS) as answer:
            return answer.status == 200
    except urllib.error.HTTPError as error:  # not ready yet; it holds an answer, which stays open
        error.close()
        return False
    except OSError:  # refused, reset or late
        return False


def _trusting() -> ssl.SSLContext:
    tls = ssl.create_default_context()
    tls.check_hostname = False
    tls.verify_mode = ssl.CERT_NONE
    return tls
