"""Headless Chromium over WebDriver, with nothing but the standard library."""
import csv
import http.client
import io
import json
import pathlib
import shutil
import socket
import subprocess
import sys
import tempfile
import time
import unittest

FLAGS = ["--headless", "--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run",
         "--disable-background-networking", "--disable-component-update", "--disable-sync", "--hide-scrollbars"]
ELEMENT = "element-6066-11e4-a52e-4f735466cecf"
KEYS = {"Enter": "\ue007", "Escape": "\ue00c", "ArrowLeft": "\ue012", "ArrowUp": "\ue013", "ArrowRight": "\ue014", "ArrowDown": "\ue015"}


def free_port():
    with socket.socket() as s:
        s.bind(("127.0.0.1", 0))
        return s.getsockname()[1]


class Browser:
    def __init__(self, width=1360, height=900):
        self.profile, self.port = tempfile.mkdtemp(), free_port()
        self.driver = subprocess.Popen(["chromedriver", f"--port={self.port}"], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        self.wait_for_driver()
        options = {"args": [*FLAGS, f"--window-size={width},{height}", f"--user-data-dir={self.profile}"]}
        always = {"browserName": "chrome", "goog:chromeOptions": options, "goog:loggingPrefs": {"browser": "ALL", "performance": "ALL"}}
        self.session = None
        self.session = self.call("POST", "/session", {"capabilities": {"alwaysMatch": always}})["sessionId"]

    def wait_for_driver(self):
        for _ in range(200):
            try:
                if self.call("GET", "/status", top=True)["ready"]:
                    return
            except OSError:
                time.sleep(0.1)
        raise RuntimeError("chromedriver does not answer")

    def call(self, method, path, body=None, top=False):
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=120)
        if not top and path != "/session":
            path = f"/session/{self.session}{path}"
        connection.request(method, path, json.dumps(body) if body is not None else None, {"Content-Type": "application/json"})
        value = json.loads(connection.getresponse().read())["value"]
        connection.close()
        if isinstance(value, dict) and "error" in value:
            raise RuntimeError(f"{method} {path}: {value['message']}")
        return value

    def close(self):
        try:
            if self.session:
                self.call("DELETE", "")
        finally:
            self.driver.terminate()
            self.driver.wait()
            shutil.rmtree(self.profile, ignore_errors=True)

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.close()

    def open(self, url):
        self.call("POST", "/url", {"url": "about:blank"})  # a new # alone would not load the page again
        self.call("POST", "/url", {"url": url})
        self.settle()

    def run(self, script, *args):
        return self.call("POST", "/execute/sync", {"script": script, "args": list(args)})

    def settle(self):
        """Until what was asked for is drawn."""
        self.call("POST", "/execute/async", {"script": "const done = arguments[0]; requestAnimationFrame(() => requestAnimationFrame(() => done()));", "args": []})

    def find(self, css):
        return self.call("POST", "/element", {"using": "css selector", "value": css})[ELEMENT]

    def text(self, css):
        return self.run("return document.querySelector(arguments[0]).innerText", css)

    def click(self, css, shift=False):
        if shift:
            self.keys("down", "\ue008")
        self.call("POST", f"/element/{self.find(css)}/click", {})
        if shift:
            self.keys("up", "\ue008")
        self.settle()

    def keys(self, direction, *keys):
        actions = [{"type": f"key{direction.capitalize()}", "value": key} for key in keys]
        self.call("POST", "/actions", {"actions": [{"type": "key", "id": "keyboard", "actions": actions}]})

    def press(self, *names):
        for name in names:
            key = KEYS.get(name, name)
            actions = [{"type": "keyDown", "value": key}, {"type": "keyUp", "value": key}]
            self.call("POST", "/actions", {"actions": [{"type": "key", "id": "keyboard", "actions": actions}]})
        self.settle()

    def point(self, css, x, y, click=False):
        """At (x, y) from the element's corner, with the real pointer."""
        self.run("document.querySelector(arguments[0]).scrollIntoView({block: 'nearest'})", css)
        box = self.run("const b = document.querySelector(arguments[0]).getBoundingClientRect(); return [b.left, b.top]", css)
        actions = [{"type": "pointerMove", "duration": 0, "origin": "viewport", "x": round(box[0] + x), "y": round(box[1] + y)}]
        if click:
            actions += [{"type": "pointerDown", "button": 0}, {"type": "pointerUp", "button": 0}]
        self.call("POST", "/actions", {"actions": [{"type": "pointer", "id": "mouse", "parameters": {"pointerType": "mouse"}, "actions": actions}]})
        self.settle()

    def choose(self, css, value):
        self.run("const e = document.querySelector(arguments[0]); e.value = arguments[1]; e.dispatchEvent(new Event('change'))", css, value)
        self.settle()

    def complaints(self):
        """What the console has said."""
        return [entry["message"] for entry in self.call("POST", "/se/log", {"type": "browser"})]

    def requests(self):
        """Addresses that were asked for."""
        found = []
        for entry in self.call("POST", "/se/log", {"type": "performance"}):
            message = json.loads(entry["message"])["message"]
            if message["method"] == "Network.requestWillBeSent":
                found.append(message["params"]["request"]["url"])
        return found


INSIDE = ("file:", "about:", "data:", "blob:", "chrome:")  # the last: the page that the browser shows first


class Browsing(unittest.TestCase):
    """After each test the console must have stayed empty, and nothing been asked of the network."""

    @classmethod
    def setUpClass(cls):
        cls.folder = tempfile.TemporaryDirectory()
        cls.browser = Browser()

    @classmethod
    def tearDownClass(cls):
        cls.browser.close()
        cls.folder.cleanup()

    def tearDown(self):
        self.assertEqual(self.browser.complaints(), [])
        self.assertEqual([url for url in self.browser.requests() if not url.startswith(INSIDE)], [])

    def open_page(self, page, state):
        path = pathlib.Path(self.folder.name) / "page.html"
        path.write_bytes(page)
        self.browser.open(f"file://{path}#{state}")

    def state(self):
        return self.browser.run("return location.hash.slice(1)")

    def caught(self, button):
        """What a button copies, caught on its way to the clipboard, as rows."""
        self.browser.run("window.copied = null; navigator.clipboard.writeText = async (text) => { window.copied = text; }")
        self.browser.click(button)
        return list(csv.reader(io.StringIO(self.browser.run("return window.copied"))))


def main(*arguments):
    """Runs the tests of the program that calls it; the last line counts them."""
    result = unittest.main(argv=[sys.argv[0], *arguments], exit=False).result
    bad = len(result.failures) + len(result.errors)
    print(f"{result.testsRun - bad - len(result.skipped)} passed, {bad} failed, {len(result.skipped)} skipped")
    sys.exit(bad > 0)
