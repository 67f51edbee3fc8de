"""A headless Chromium, driven through its DevTools protocol over a pipe; skipped where there is none."""

import base64
import json
import os
import select
import shutil
import subprocess
import time

import pytest

NAMES = ("chromium", "chromium-browser", "google-chrome", "chrome")
KEYS = {"Tab": 9, "Enter": 13, "ArrowDown": 40, " ": 32}


class Browser:
    """One page of a browser.

    Attributes:
        errors: exceptions, errors of the console and refused loads.
        requests: addresses that the page asked for.
    """

    def __init__(self, profile):
        program = next((found for name in NAMES if (found := shutil.which(name))), None)
        if program is None:
            pytest.skip("there is no Chromium here")
        self.errors, self.requests, self._last = [], [], 0
        theirs_in, self._out = os.pipe()
        self._in, theirs_out = os.pipe()
        options = [
            "--headless=new",
            "--no-sandbox",
            "--disable-gpu",
            "--remote-debugging-pipe",
            f"--user-data-dir={profile}",
        ]
        # The protocol is read from descriptor 3 and written to 4.
        script = f'exec "$@" 3<&{theirs_in} 4>&{theirs_out}'
        self._process = subprocess.Popen(
            ["bash", "-c", script, "bash", program, *options, "about:blank"],
            pass_fds=(theirs_in, theirs_out),
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
        )
        os.close(theirs_in)
        os.close(theirs_out)
        self._buffer, self._session = b"", None
        target = self.call("Target.createTarget", url="about:blank")["targetId"]
        self._session = self.call("Target.attachToTarget", targetId=target, flatten=True)["sessionId"]
        for domain in ("Page", "Runtime", "Log", "Network"):
            self.call(f"{domain}.enable")

    def close(self):
        self._process.terminate()
        self._process.wait(20)
        os.close(self._in)
        os.close(self._out)

    def call(self, method, **parameters):
        """Call a method of the protocol, and return its result."""
        self._last += 1
        message = {"id": self._last, "method": method, "params": parameters}
        if self._session is not None:
            message["sessionId"] = self._session
        os.write(self._out, json.dumps(message).encode() + b"\0")
        while True:
            answer = self._message()
            if answer.get("id") == self._last:
                assert "error" not in answer, answer
                return answer["result"]

    def _message(self):
        while b"\0" not in self._buffer:
            ready, _, _ = select.select([self._in], [], [], 60)
            assert ready, "the browser does not answer"
            self._buffer += os.read(self._in, 1 << 20)
        text, _, self._buffer = self._buffer.partition(b"\0")
        message = json.loads(text)
        method, values = message.get("method"), message.get("params", {})
        if method == "Runtime.exceptionThrown":
            self.errors.append(values["exceptionDetails"].get("text"))
        elif method == "Log.entryAdded" and values["entry"]["level"] == "error":
            self.errors.append(values["entry"]["text"])
        elif method == "Network.requestWillBeSent":
            self.requests.append(values["request"]["url"])
        return message

    def open(self, path, *, width=1200, height=900, dark=False):
        """Open a file in a window of a size, and wait until its script has run."""
        phone = width < 600
        self.call("Emulation.setDeviceMetricsOverride", width=width, height=height, deviceScaleFactor=1, mobile=phone)
        scheme = {"name": "prefers-color-scheme", "value": "dark" if dark else "light"}
        self.call("Emulation.setEmulatedMedia", features=[scheme])
        self.call("Page.navigate", url=path.as_uri())
        self.until("document.readyState === 'complete'")

    def read(self, expression):
        """Return the value of an expression."""
        found = self.call("Runtime.evaluate", expression=expression, returnByValue=True, awaitPromise=True)
        assert "exceptionDetails" not in found, found
        return found["result"].get("value")

    def until(self, expression):
        """Wait until an expression holds."""
        end = time.monotonic() + 20
        while not self.read(expression):
            assert time.monotonic() < end, expression
            time.sleep(0.02)

    def press(self, key):
        """Press and release a key."""
        code = {"key": key, "code": key if len(key) > 1 else "Space", "windowsVirtualKeyCode": KEYS[key]}
        text = {"Enter": "\r", " ": " "}.get(key)
        self.call("Input.dispatchKeyEvent", type="keyDown", **code, **({"text": text} if text else {}))
        self.call("Input.dispatchKeyEvent", type="keyUp", **code)

    def tab_to(self, condition):
        """Press the tab key until an element has the focus for which a condition holds."""
        for _ in range(400):
            self.press("Tab")
            if self.read(f"(e => {condition})(document.activeElement)"):
                return
        raise AssertionError(f"no element with {condition} can be reached by keyboard")

    def picture(self, path):
        """Save a picture of the whole page."""
        size = self.call("Page.getLayoutMetrics")["cssContentSize"]
        clip = {"x": 0, "y": 0, "width": size["width"], "height": min(size["height"], 6000), "scale": 1}
        found = self.call("Page.captureScreenshot", format="png", clip=clip, captureBeyondViewport=True)
        path.write_bytes(base64.b64decode(found["data"]))


@pytest.fixture(scope="module")
def browser(tmp_path_factory):
    opened = Browser(tmp_path_factory.mktemp("profile"))
    yield opened
    opened.close()
