"""A server for a test, and clients of it: http.client over TCP or a Unix socket, or raw bytes."""
import http.client
import json
import os
import signal
import socket
import subprocess
import unittest

from command import BERT, TINY, environment

BUILT = os.path.exists(os.path.join(os.path.dirname(BERT), "bert-serve"))


def without_server(*_):
    """In the place of load_tests where there is nothing to test."""
    print("bert-serve was not built (no libmicrohttpd): its tests are skipped")
    return unittest.TestSuite()


class UnixConnection(http.client.HTTPConnection):
    def __init__(self, path):
        super().__init__("localhost", timeout=60)
        self.path = path

    def connect(self):
        self.sock = socket.socket(socket.AF_UNIX)
        self.sock.settimeout(self.timeout)
        try:
            self.sock.connect(self.path)
        except OSError:
            self.close()
            raise


class Server:
    """with Server("-t", "1") as server: server.post("/embed", {...})"""

    def __init__(self, *args, model=TINY, perturbed=True):
        where = () if "--socket" in args else ("--port", "0")
        models = () if "-m" in args else ("-m", model)
        self.process = subprocess.Popen([BERT, "serve", *models, *where, *args], stdout=subprocess.PIPE,
                                        stderr=subprocess.PIPE, env=environment(perturbed), text=True)
        self.address = self.process.stdout.readline().strip()
        if not self.address:
            raise AssertionError(f"no server: {self.process.communicate()[1]}")

    def __enter__(self):
        return self

    def __exit__(self, kind, *_):
        status, said = self.stop()
        if kind is None and (status or said):
            raise AssertionError(f"the server ended with {status}: {said[-4000:]}")

    def stop(self):
        """SIGTERM; the exit status and what it said on stderr."""
        if self.process.poll() is None:
            self.process.send_signal(signal.SIGTERM)
        said = self.process.communicate()[1]
        return self.process.returncode, said

    def connect(self):
        if self.address.startswith("unix:"):
            return UnixConnection(self.address[5:])
        host, port = self.address.removeprefix("http://").rsplit(":", 1)
        return http.client.HTTPConnection(host, int(port), timeout=60)

    def socket(self):
        connection = self.connect()
        connection.connect()
        return connection.sock

    def ask(self, method, path, body=None, headers=None, connection=None):
        """(status, headers, body)"""
        c = connection or self.connect()
        c.request(method, path, body, headers or {})
        answer = c.getresponse()
        data = answer.read()
        if not connection:
            c.close()
        return answer.status, answer.headers, data

    def get(self, path, **more):
        return self.ask("GET", path, **more)

    def post(self, path, value, **more):
        """The JSON that was answered, which must be a 200."""
        status, headers, data = self.ask("POST", path, json.dumps(value), **more)
        if status != 200:
            raise AssertionError(f"{path}: {status} {data[:300]}")
        return json.loads(data)

    def refused(self, path, value, **more):
        """Status and words of the error."""
        body = value if isinstance(value, (str, bytes)) else json.dumps(value)
        status, headers, data = self.ask("POST", path, body, **more)
        error = json.loads(data)["error"]
        return status, error["message"] if isinstance(error, dict) else error

    def metric(self, name, **more):
        return int(self.get("/metrics", **more)[2].decode().split(f"\n{name} ")[1].split()[0])

    def cpu(self):
        """Seconds that it has worked."""
        with open(f"/proc/{self.process.pid}/stat", encoding="ascii") as f:
            return sum(map(int, f.read().rsplit(")", 1)[1].split()[11:13])) / os.sysconf("SC_CLK_TCK")


def read_all(sock):
    """What comes until the server closes."""
    data = b""
    try:
        while part := sock.recv(1 << 16):
            data += part
    except ConnectionResetError:
        pass
    return data


def statuses(data):
    """Of the answers in what came over a connection (none of their bodies has such a line)."""
    return [int(part.split()[1]) for part in (b"\n" + data).split(b"\nHTTP/1.1")[1:] for part in [b"HTTP/1.1" + part]]
