"""A real browser for tests: chromium through its driver, by the WebDriver protocol, no package.

``open_browser()`` is a context; tests skip where chromium or chromedriver is not installed.
"""

from __future__ import annotations

import base64
import json
import shutil
import socket
import subprocess
import tempfile
import time
import urllib.error
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

CHROMIUM = next(
    filter(None, map(shutil.which, ("chromium", "chromium-browser", "google-chrome"))), None
)
DRIVER = shutil.which("chromedriver")
FLAGS = (
    "--headless",
    "--no-sandbox",
    "--disable-gpu",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
    "--disable-dev-shm-usage",
    "--hide-scrollbars",
    "--force-device-scale-factor=1",
)


class Browser:
    """One page, driven from outside."""

    def __init__(self, address: str, session: str) -> None:
        self.base = f"{address}/session/{session}"

    def _call(self, path: str, body: dict[str, Any] | None = None) -> Any:
        return call(f"{self.base}{path}", body)

    def open(self, page: Path) -> None:
        """Open a file, with empty logs, and wait until its scripts have run."""
        self._call("/url", {"url": "about:blank"})
        for kind in ("browser", "performance"):
            self._call("/se/log", {"type": kind})
        self._call("/url", {"url": page.resolve().as_uri()})

    def run(self, script: str, *arguments: Any) -> Any:
        """The value of a script's ``return``."""
        return self._call("/execute/sync", {"script": script, "args": list(arguments)})

    def text(self, identity: str) -> str:
        return self.run("return document.getElementById(arguments[0]).textContent", identity)

    def set(self, identity: str, value: object) -> None:
        """Give an input a value as a hand would: with its events."""
        self.run(
            "const e = document.getElementById(arguments[0]); e.value = arguments[1];"
            "for (const kind of ['input', 'change'])"
            " e.dispatchEvent(new Event(kind, {bubbles: true}));",
            identity,
            str(value),
        )

    def press(self, identity: str, keys: str) -> None:
        """Type keys into an element."""
        (found,) = self._call(
            "/element", {"using": "css selector", "value": f"#{identity}"}
        ).values()
        self._call(f"/element/{found}/value", {"text": keys})

    def console(self) -> list[str]:
        """What the page wrote to its console so far: errors, warnings and all else."""
        entries = self._call("/se/log", {"type": "browser"})
        return [entry["message"] for entry in entries]

    def complaints(self) -> list[str]:
        """The errors and warnings among what the page wrote to its console so far."""
        entries = self._call("/se/log", {"type": "browser"})
        return [e["message"] for e in entries if e["level"] in ("SEVERE", "WARNING")]

    def requests(self) -> list[str]:
        """The addresses that the page asked for, as the browser's network log has them."""
        found = []
        for entry in self._call("/se/log", {"type": "performance"}):
            message = json.loads(entry["message"])["message"]
            if message["method"] == "Network.requestWillBeSent":
                found.append(message["params"]["request"]["url"])
        return found

    def resize(self, width: int, height: int) -> None:
        self._call("/window/rect", {"width": width, "height": height})

    def view(self, width: int, height: int = 900, *, dark: bool = False) -> None:
        """Look at pages through a window of this width, on paper or in the dark."""
        size = {"width": width, "height": height, "deviceScaleFactor": 1, "mobile": False}
        self._develop("Emulation.setDeviceMetricsOverride", size)
        scheme = {"name": "prefers-color-scheme", "value": "dark" if dark else "light"}
        self._develop("Emulation.setEmulatedMedia", {"features": [scheme]})

    def _develop(self, command: str, parameters: dict[str, Any]) -> Any:
        """A command of the browser's own protocol."""
        return self._call("/goog/cdp/execute", {"cmd": command, "params": parameters})

    def settle(self) -> None:
        """Wait until what observes sizes has been called, and the page been drawn."""
        script = "const done = arguments[0]; requestAnimationFrame(() => setTimeout(done, 30));"
        self._call("/execute/async", {"script": script, "args": []})

    def screenshot(self, file: Path) -> None:
        """A picture of the whole page."""
        wanted = {"format": "png", "captureBeyondViewport": True}
        taken = self._develop("Page.captureScreenshot", wanted)
        file.write_bytes(base64.b64decode(taken["data"]))


def call(address: str, body: dict[str, Any] | None, method: str | None = None) -> Any:
    method = method or ("GET" if body is None else "POST")
    data = None if body is None else json.dumps(body).encode()
    request = urllib.request.Request(
        address, data, {"Content-Type": "application/json"}, method=method
    )
    try:
        with urllib.request.urlopen(request, timeout=60) as answer:
            return json.load(answer)["value"]
    except urllib.error.HTTPError as error:
        raise RuntimeError(f"{address}: {json.load(error)['value']['message']}") from error


@contextmanager
def open_browser() -> Iterator[Browser]:
    """A browser with an empty profile; skips the test where there is none."""
    if CHROMIUM is None or DRIVER is None:
        pytest.skip("browser tests need chromium and chromedriver (Debian: chromium-driver)")
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    address = f"http://127.0.0.1:{port}"
    with tempfile.TemporaryDirectory() as profile:
        driver = subprocess.Popen(
            [DRIVER, f"--port={port}"], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
        )
        try:
            _wait(address)
            wanted = {
                "browserName": "chrome",
                "goog:chromeOptions": {
                    "binary": CHROMIUM,
                    "args": [*FLAGS, f"--user-data-dir={profile}"],
                },
                "goog:loggingPrefs": {"browser": "ALL", "performance": "ALL"},
            }
            started = call(f"{address}/session", {"capabilities": {"alwaysMatch": wanted}})
            session = started["sessionId"]
            try:
                yield Browser(address, session)
            finally:
                call(f"{address}/session/{session}", None, "DELETE")
        finally:
            driver.terminate()
            driver.wait(timeout=20)


def _wait(address: str) -> None:
    for _ in range(200):
        try:
            if call(f"{address}/status", None)["ready"]:
                return
        except (OSError, RuntimeError):
            pass
        time.sleep(0.05)
    raise RuntimeError("chromedriver did not start")
