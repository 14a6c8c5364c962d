"""A real browser without a driver: Chromium, controlled through its debugging pipe."""

import base64
import json
import os
import select
import shutil
import signal
import subprocess
import time
from contextlib import suppress

CHROMIUM = shutil.which("chromium") or shutil.which("chromium-browser")
PATIENCE = 60  # seconds until something counts as failed, also on a busy machine


class Browser:
    """One page in headless Chromium."""

    def __init__(self, profile, width=1280, height=900, dark=False):
        read_end, from_browser = os.pipe()
        to_browser, write_end = os.pipe()
        flags = "--headless=new --no-sandbox --disable-gpu --disable-dev-shm-usage --no-first-run"
        flags += f" --remote-debugging-pipe --user-data-dir={profile}"
        # The browser reads commands from descriptor 3 and answers on 4.
        shell = f'exec "{CHROMIUM}" {flags} 3<&{to_browser} 4>&{from_browser}'
        self._process = subprocess.Popen(
            ["bash", "-c", shell],
            pass_fds=(to_browser, from_browser),
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            start_new_session=True,
        )
        os.close(to_browser)
        os.close(from_browser)
        self._out, self._in, self._received = write_end, read_end, b""
        self._number, self._session, self._loaded, self.errors = 0, None, [], []
        target = self._call("Target.createTarget", url="about:blank")["targetId"]
        attached = self._call("Target.attachToTarget", targetId=target, flatten=True)
        self._session = attached["sessionId"]
        for domain in ("Page", "Runtime", "Log"):
            self._call(f"{domain}.enable")
        self._call("Page.setLifecycleEventsEnabled", enabled=True)
        self._call("Emulation.setFocusEmulationEnabled", enabled=True)
        self.resize(width, height, dark)

    def __enter__(self):
        return self

    def __exit__(self, *_):
        # Closed rather than killed: a killed browser leaves processes that still write its profile,
        # while whoever made the folder removes it.
        with suppress(AssertionError, OSError, subprocess.TimeoutExpired):
            self._session = None
            self._call("Browser.close")
            self._process.wait(PATIENCE)
        with suppress(ProcessLookupError):
            os.killpg(self._process.pid, signal.SIGKILL)
        self._process.wait()
        os.close(self._out)
        os.close(self._in)

    def resize(self, width, height, dark=False):
        """Change the size of the window, and between light and dark."""
        shape = {"width": width, "height": height, "deviceScaleFactor": 1, "mobile": width < 600}
        self._call("Emulation.setDeviceMetricsOverride", **shape)
        scheme = {"name": "prefers-color-scheme", "value": "dark" if dark else "light"}
        still = {"name": "prefers-reduced-motion", "value": "reduce"}
        self._call("Emulation.setEmulatedMedia", features=[scheme, still])

    def open(self, page):
        """Open a file, or an address."""
        url = page if isinstance(page, str) else page.as_uri()
        loader = self._call("Page.navigate", url=url)["loaderId"]
        while loader not in self._loaded:
            self._next()

    def reload(self):
        """Load the page again; nothing of the old document is there afterwards."""
        before = len(self._loaded)
        self._call("Page.reload")
        while len(self._loaded) == before:
            self._next()

    def run(self, expression):
        """The value of a JavaScript expression."""
        answer = self._call(
            "Runtime.evaluate", expression=expression, returnByValue=True, awaitPromise=True
        )
        assert "exceptionDetails" not in answer, answer["exceptionDetails"]
        return answer["result"].get("value")

    def wait_for(self, expression, value=True):
        """Wait until a JavaScript expression has a value, or is true."""
        end = time.monotonic() + PATIENCE
        while (found := self.run(expression)) != value:
            assert time.monotonic() < end, f"{expression} is {found!r}; {self.errors}"
            time.sleep(0.03)

    def press(self, *keys, shift=False, control=False):
        """Press keys, one after the other."""
        for key in keys:
            text = {"text": key} if len(key) == 1 else {"text": "\r"} if key == "Enter" else {}
            code = {"windowsVirtualKeyCode": 27} if key == "Escape" else {}
            code |= {"code": f"Digit{key}"} if key.isdigit() else {}
            code |= {"modifiers": 8 * shift + 2 * control}
            text = {} if control else text
            self._call("Input.dispatchKeyEvent", type="keyDown", key=key, **text, **code)
            self._call("Input.dispatchKeyEvent", type="keyUp", key=key, **code)

    def type(self, text):
        """Type a text into the field in focus."""
        self._call("Input.insertText", text=text)

    def click(self, selector, shift=False):
        """Click the middle of the first element that matches."""
        box = f"document.querySelector({json.dumps(selector)}).getBoundingClientRect()"
        x, y = self.run(f"(r => [r.x + r.width / 2, r.y + r.height / 2])({box})")
        point = {"x": x, "y": y, "button": "left", "clickCount": 1, "modifiers": 8 * shift}
        for kind in ("mousePressed", "mouseReleased"):
            self._call("Input.dispatchMouseEvent", type=kind, **point)

    def drag(self, start, end):
        """Press the mouse at one point, move it to another and release it there."""
        steps = [("mousePressed", start), ("mouseMoved", end), ("mouseReleased", end)]
        for kind, (x, y) in steps:
            held = {"button": "left", "buttons": 1, "clickCount": 1}
            self._call("Input.dispatchMouseEvent", type=kind, x=x, y=y, **held)

    def screenshot(self, path):
        """Write what the window shows as PNG."""
        path.write_bytes(base64.b64decode(self._call("Page.captureScreenshot")["data"]))

    def _call(self, method, **parameters):
        self._number += 1
        message = {"id": self._number, "method": method, "params": parameters}
        if self._session:
            message["sessionId"] = self._session
        content = memoryview(json.dumps(message).encode() + b"\0")
        while content:
            content = content[os.write(self._out, content) :]
        while (answer := self._next()).get("id") != self._number:
            pass
        assert "error" not in answer, answer
        return answer["result"]

    def _next(self):
        """The next answer or event."""
        while b"\0" not in self._received:
            ready, _, _ = select.select([self._in], [], [], PATIENCE)
            assert ready, "the browser does not answer"
            part = os.read(self._in, 2**20)
            assert part, "the browser has gone"
            self._received += part
        message, _, self._received = self._received.partition(b"\0")
        answer = json.loads(message)
        event, parameters = answer.get("method"), answer.get("params", {})
        if event == "Page.lifecycleEvent" and parameters["name"] == "load":
            self._loaded.append(parameters["loaderId"])
        if event == "Log.entryAdded":
            self.errors.append(parameters["entry"]["text"])
        if event == "Runtime.exceptionThrown":
            self.errors.append(parameters["exceptionDetails"]["text"])
        return answer
