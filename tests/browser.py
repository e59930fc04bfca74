"""A real browser for tests: Chromium without a window, driven by what Debian calls chromium-driver.

It speaks the WebDriver protocol of the W3C over the loopback: the standard library is enough.
"""

from __future__ import annotations

import base64
import json
import shutil
import subprocess
import tempfile
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

BROWSERS = ("chromium", "chromium-browser", "google-chrome")
FLAGS = (
    *("--headless", "--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run"),
    *("--disable-background-networking", "--disable-component-update", "--disable-sync"),
    *("--hide-scrollbars", "--host-resolver-rules=MAP * ~NOTFOUND"),
)
SECONDS = 120.0


def missing() -> str | None:
    """Return which program is not installed; None if there is a browser and its driver."""
    if not any(map(shutil.which, BROWSERS)):
        return f"needs a browser, one of {', '.join(BROWSERS)} (Debian: apt-get install chromium)"
    if shutil.which("chromedriver") is None:
        return "needs chromedriver (Debian: apt-get install chromium-driver)"
    return None


class Browser:
    """One window."""

    def __init__(self, address: str) -> None:
        self._address = address

    def call(self, method: str, path: str, body: Any = None) -> Any:
        """One command of the protocol; its value."""
        content = None if method == "GET" else json.dumps(body or {}).encode()
        request = urllib.request.Request(self._address + path, content, method=method)
        request.add_header("Content-Type", "application/json")
        with urllib.request.urlopen(request, timeout=SECONDS) as answer:
            return json.load(answer)["value"]

    def open(self, page: Path, width: int = 1280, height: int = 900) -> None:
        """Show a page in a window of this size."""
        self.call("POST", "/window/rect", {"width": width, "height": height})
        self.call("POST", "/url", {"url": page.as_uri()})

    def run(self, script: str) -> Any:
        """The value of a piece of JavaScript."""
        return self.call("POST", "/execute/sync", {"script": script, "args": []})

    def screenshot(self, path: Path) -> None:
        """Take a picture of the window, as PNG."""
        path.write_bytes(base64.b64decode(self.call("GET", "/screenshot")))


@contextmanager
def browser() -> Iterator[Browser]:
    """A browser with a new profile, which is gone at the end; the driver is this test's own."""
    binary = next(found for name in BROWSERS if (found := shutil.which(name)))
    command = ["chromedriver", "--port=0"]
    quiet: Any = {"stdout": subprocess.PIPE, "stderr": subprocess.DEVNULL, "text": True}
    with tempfile.TemporaryDirectory() as profile, subprocess.Popen(command, **quiet) as driver:
        try:
            address = f"http://127.0.0.1:{_port(driver)}"
            wanted = {"binary": binary, "args": [*FLAGS, f"--user-data-dir={profile}"]}
            capabilities = {"browserName": "chrome", "goog:chromeOptions": wanted}
            session = Browser(address).call(
                "POST", "/session", {"capabilities": {"alwaysMatch": capabilities}}
            )
            window = Browser(f"{address}/session/{session['sessionId']}")
            try:
                yield window
            finally:
                window.call("DELETE", "")
        finally:
            driver.terminate()


def _port(driver: subprocess.Popen[str]) -> int:
    """The free port that the driver has chosen."""
    assert driver.stdout is not None
    for line in driver.stdout:
        _, found, rest = line.partition("successfully on port ")
        if found:
            return int(rest.strip().rstrip("."))
    raise RuntimeError(f"chromedriver ended with {driver.wait()}")
