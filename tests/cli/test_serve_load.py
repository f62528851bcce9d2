"""bert serve under load: many clients at once, some that send nonsense or go away; stopped at random moments; asked for
ten times as much as it can do.

$BERT_TEST_LONG: as many stops as docs/reliability.md asks for, and the overload. $BERT_TEST_MODE (sanitizers): nothing
is timed."""
import contextlib
import http.client
import json
import os
import pathlib
import random
import resource
import signal
import socket
import struct
import threading
import time
import unittest

from command import Case, FOX, TINY, model
from serving import BUILT, Server, without_server

LONG = "BERT_TEST_LONG" in os.environ
MEASURED = "BERT_TEST_MODE" not in os.environ
MODELS = ("-m", TINY, "-m", model("tiny-bert-reranker"))
EMBEDS, RANKS = {"model": "tiny-bert"}, {"model": "tiny-bert-reranker"}

# Every endpoint whose answer is always the same, then what must be refused: (status, method, path, body)
ASKS = [
    (200, "GET", "/", None),
    (200, "GET", "/health", None),
    (200, "GET", "/info", None),
    (200, "GET", "/v1/models", None),
    (200, "POST", "/v1/embeddings", {**EMBEDS, "input": [FOX, "", "naïve café"]}),
    (200, "POST", "/v1/embeddings", {**EMBEDS, "input": FOX, "encoding_format": "base64"}),
    (200, "POST", "/embed", {**EMBEDS, "inputs": ["a b " * 30, "fox"] * 8}),
    (200, "POST", "/", {**RANKS, "inputs": "a b"}),
    (200, "POST", "/rerank", {**RANKS, "query": "a", "texts": [FOX, "a b", ""], "return_text": True}),
    (200, "POST", "/tokenize", {**EMBEDS, "inputs": FOX}),
    (200, "POST", "/attention", {**EMBEDS, "text": FOX, "what": "weights,rollout"}),
    (200, "POST", "/page", {**EMBEDS, "text": "a b"}),
    (400, "POST", "/embed", "{"),
    (404, "POST", "/embed", {"model": "none", "inputs": "a"}),
    (404, "GET", "/nothing", None),
    (405, "GET", "/rerank", None),
    (422, "POST", "/rerank", {**EMBEDS, "query": "a", "texts": ["b"]}),
    (413, "POST", "/v1/embeddings", {**EMBEDS, "input": [5] * 65}),
]
BUSY = (429, 503)


def spelt(value):
    return value if value is None or isinstance(value, str) else json.dumps(value)


def memory(server, what):
    """MiB"""
    status = pathlib.Path(f"/proc/{server.process.pid}/status").read_text(encoding="ascii")
    return int(status.split(f"{what}:")[1].split()[0]) / 1024


def leave(server, pick):
    """A client that sends a request, or a part of one, and goes away in one of two ways."""
    body = json.dumps(ASKS[pick.choice((4, 6, 8, 10))][3]).encode()
    request = b"POST /embed HTTP/1.1\r\nHost: x\r\nContent-Length: %d\r\n\r\n" % len(body) + body
    with contextlib.suppress(OSError), server.socket() as s:
        s.sendall(request[: pick.choice((len(request), pick.randrange(len(request))))])
        if pick.random() < 0.5:
            s.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))


class Client(threading.Thread):
    """Asks one thing after the other until `count` are answered or the server has no more answers for it."""

    def __init__(self, server, expected, seed, count=1 << 30):
        super().__init__()
        self.server, self.expected, self.pick, self.count = server, expected, random.Random(seed), count
        self.answered, self.busy, self.wrong = 0, 0, []
        self.sent = None  # when the last request was, if it was not answered

    def run(self):
        connection = self.server.connect()
        with contextlib.closing(connection):
            while self.answered < self.count and self.ask(connection):
                if self.pick.random() < 0.1:
                    leave(self.server, self.pick)

    def ask(self, connection):
        """True: there was an answer, and the connection or a new one can take the next request."""
        number = self.pick.randrange(len(ASKS))
        _, method, path, value = ASKS[number]
        self.sent = None
        try:
            connection.request(method, path, spelt(value))
            self.sent = time.monotonic()
            answer = connection.getresponse()
            data = answer.read()
        except http.client.IncompleteRead:
            self.wrong.append(("a part of an answer", path))
            return False
        except (OSError, http.client.HTTPException):
            return False
        self.sent = None
        self.answered += 1
        if answer.status in BUSY and answer.headers["Retry-After"] == "1":
            self.busy += 1
        elif (answer.status, data) != self.expected[number]:
            self.wrong.append((path, answer.status, data[:200]))
        return True


class WithCrowd(Case):
    def alone(self, server):
        """What each of ASKS is answered when nobody else asks."""
        answers = [server.ask(method, path, spelt(value)) for _, method, path, value in ASKS]
        self.assertEqual([status for status, _, _ in answers], [ask[0] for ask in ASKS])
        return [(status, data) for status, _, data in answers]

    def crowd(self, server, n, *more):
        clients = [Client(server, self.expected, seed, *more) for seed in range(n)]
        for client in clients:
            client.start()
        return clients

    def settled(self, server):
        """Descriptors that the server has when nobody but us is there."""
        deadline = time.monotonic() + 60
        with contextlib.closing(server.connect()) as us:
            while server.metric("bert_connections", connection=us) > 1:
                self.assertLess(time.monotonic(), deadline, "connections of clients that have gone are still open")
                time.sleep(0.05)
            return len(os.listdir(f"/proc/{server.process.pid}/fd"))


class Load(WithCrowd):
    def test_everything_at_once(self):
        """All endpoints, good and bad requests, clients that go: each answer is the one that it would be alone."""
        with Server(*MODELS, "-t", "2", "--max-queue", "8") as server:
            self.expected = self.alone(server)
            before = self.settled(server)
            clients = self.crowd(server, 24, 400 if LONG else 40)
            for client in clients:
                client.join()
            self.assertEqual([w for client in clients for w in client.wrong], [])
            self.assertEqual({client.answered for client in clients}, {400 if LONG else 40})
            self.assertEqual(self.settled(server), before)
            self.assertEqual(self.alone(server), self.expected)
            busy = sum(client.busy for client in clients)
            print(f"figure: server, all at once: {sum(c.answered for c in clients)} answers, {busy} of them 429")


class Stops(WithCrowd):
    """SIGTERM at random moments under load. What was sent before it is answered, whole; the status is 0."""

    def setUp(self):
        super().setUp()
        self.path = str(self.folder / "s")  # a request that was sent over a Unix socket is there; TCP may take its time
        with self.server() as server:
            self.expected = self.alone(server)

    def server(self, *more):
        return Server(*MODELS, "--socket", self.path, *more)

    def refuses(self):
        """Seconds until nobody can connect any more."""
        began = time.monotonic()
        with contextlib.suppress(ConnectionRefusedError, FileNotFoundError):
            while True:
                with socket.socket(socket.AF_UNIX) as s:
                    s.connect(self.path)
                time.sleep(0.001)
        return time.monotonic() - began

    def stop(self, delay):
        """Seconds until it takes no more connections and until it has ended; answers after the signal."""
        server = self.server()
        clients = self.crowd(server, 12)
        time.sleep(delay)
        signalled = time.monotonic()
        server.process.send_signal(signal.SIGTERM)
        closed = self.refuses()
        said = server.process.communicate()
        ended = time.monotonic() - signalled
        for client in clients:
            client.join()
        self.assertEqual((server.process.returncode, said), (0, ("", "")))
        self.assertEqual([w for client in clients for w in client.wrong], [])
        self.assertEqual([c.sent - signalled for c in clients if c.sent and c.sent < signalled], [])
        return closed, ended

    def test_at_random_moments(self):
        pick = random.Random(23)
        times = [self.stop(pick.uniform(0, 0.5 if MEASURED else 2)) for _ in range(50 if LONG else 5)]
        closed, ended = map(max, zip(*times))
        if MEASURED:
            self.assertLess(ended, 30)
        print(f"figure: server, stopped under load: {len(times)} times, all answered; "
              f"no more connections after {closed * 1000:.0f} ms, ended after {ended:.2f} s at most")

    def test_what_came_before_the_signal(self):
        """The server stands still while requests and new connections come, more than it has room for, then the signal."""
        server = self.server("--max-connections", "3")
        clients = [server.connect() for _ in range(3)]
        for c in clients:
            self.assertEqual(server.get("/health", connection=c)[0], 200)
        server.process.send_signal(signal.SIGSTOP)
        os.waitid(os.P_PID, server.process.pid, os.WSTOPPED)  # its threads stop one by one
        clients += [server.connect() for _ in range(4)]
        for c in clients:
            c.request("GET", "/health")
        server.process.send_signal(signal.SIGTERM)
        server.process.send_signal(signal.SIGCONT)
        for c in clients:
            answer = c.getresponse()
            self.assertEqual((answer.status, answer.headers["Retry-After"]), (503, "1"))
            self.assertIn("error", json.loads(answer.read()))
            c.close()
        self.assertEqual((server.process.communicate(), server.process.returncode), (("", ""), 0))

    def test_second_signal(self):
        """It has work for a long time, and ends nevertheless."""
        body = json.dumps({**EMBEDS, "inputs": ["a " * 64] * 256})
        waited = []
        for _ in range(10 if LONG else 2):
            server = self.server("-t", "1", "--isa", "ref")
            clients = [server.connect() for _ in range(32)]
            for c in clients:
                c.request("POST", "/embed", body)
            while server.metric("bert_queue_waiting") < 16:
                time.sleep(0.01)
            server.process.send_signal(signal.SIGTERM)
            self.refuses()  # so the first one has been taken
            began = time.monotonic()
            server.process.send_signal(signal.SIGINT)
            server.process.communicate()
            waited.append(time.monotonic() - began)
            self.assertEqual(server.process.returncode, 128 + signal.SIGINT)
            for c in clients:
                c.close()
        print(f"figure: server, second signal: {len(waited)} times, ended after {max(waited) * 1000:.0f} ms at most")


class Slow(WithCrowd):
    """Clients that send or take a byte now and then, and many that only connect, beside one that behaves."""
    CLIENTS, SECONDS, TIMEOUT = (200, 20, 2) if LONG else (40, 3, 1)

    def server(self, *more):
        return Server("-t", "1", "--timeout", str(self.TIMEOUT), "--max-connections", str(self.CLIENTS + 10), *more, perturbed=False)

    def well_behaved(self, server, while_):
        """Seconds that 99 of 100 requests take at most."""
        took = []
        with contextlib.closing(server.connect()) as us:
            while while_():
                began = time.monotonic()
                self.assertEqual(server.ask("POST", "/embed", json.dumps({"inputs": FOX}), connection=us)[2], self.expected)
                took.append(time.monotonic() - began)
        return sorted(took)[len(took) * 99 // 100]

    def beside(self, server, slow):
        """The same for a second alone, then until `slow` has ended; MiB that the server grew meanwhile."""
        self.expected = server.ask("POST", "/embed", json.dumps({"inputs": FOX}))[2]
        before, until = self.settled(server), time.monotonic() + 1
        alone = self.well_behaved(server, lambda: time.monotonic() < until)
        idle = memory(server, "VmRSS")
        thread = threading.Thread(target=slow)
        thread.start()
        together = self.well_behaved(server, thread.is_alive)
        thread.join()
        grown = memory(server, "VmHWM") - idle
        self.assertEqual(self.settled(server), before)
        return alone, together, grown

    def closed(self, s, most, sent=b""):
        """Has the server closed the connection? Else something goes or comes."""
        try:
            s.send(sent)
            return s.recv(most, socket.MSG_DONTWAIT) == b""
        except BlockingIOError:
            return False
        except OSError:
            return True

    def test_senders(self):
        """Each is closed when a head has had its time, and comes again."""
        ages = []

        def slow():
            end, all_ = time.monotonic() + self.SECONDS, []
            while time.monotonic() < end:
                for s, since in list(all_):
                    if self.closed(s, 1 << 16, b"G"):
                        ages.append(time.monotonic() - since)
                        all_.remove((s, since))
                        s.close()
                while len(all_) < self.CLIENTS:
                    all_.append((server.socket(), time.monotonic()))
                time.sleep(0.2)
            for s, _ in all_:
                s.close()
        with self.server() as server:
            alone, together, grown = self.beside(server, slow)
        self.assertGreater(len(ages), self.CLIENTS)
        print(f"figure: server, slow senders: {self.CLIENTS} for {self.SECONDS} s, closed after {max(ages):.1f} s at most (--timeout "
              f"{self.TIMEOUT}), {grown * 1024 / self.CLIENTS:.1f} KiB each; p99 of others {together * 1000:.1f} ms, {alone * 1000:.1f} ms without")
        if MEASURED:
            self.assertLess(grown * 1024 / self.CLIENTS, 32)
            self.assertLess(max(ages), 10 * self.TIMEOUT)

    @unittest.skipUnless(LONG, "they have 24 seconds; scripts/check long")
    def test_readers(self):
        """An answer is given up when nobody has taken it for long enough, and there are only so many of them at a time.
        (TCP's buffers would take it whole.)"""
        body = json.dumps({"text": "a " * 60, "what": "weights"})
        ages = []

        def slow():
            all_ = [server.connect() for _ in range(self.CLIENTS)]
            for c in all_:
                c.request("POST", "/attention", body)
            since = time.monotonic()
            while server.metric("bert_connections") > 2:  # us, and who behaves
                ages.append(time.monotonic() - since)
                for c in all_:
                    self.closed(c.sock, 1)
                time.sleep(0.5)
            for c in all_:
                c.close()
        with self.server("--socket", str(self.folder / "s")) as server:
            size = len(server.ask("POST", "/attention", body)[2])
            alone, together, grown = self.beside(server, slow)
        print(f"figure: server, slow readers: {self.CLIENTS} of {size} bytes, given up after {max(ages):.1f} s at most, "
              f"{grown:.1f} MiB together; p99 of others {together * 1000:.1f} ms, {alone * 1000:.1f} ms without")
        if MEASURED:
            self.assertLess(grown, 64)

    def test_flood(self):
        """More connections than it has descriptors for, again and again; it is there at once behind them."""
        with self.server() as server:
            before = self.settled(server)
            resource.prlimit(server.process.pid, resource.RLIMIT_NOFILE, (40, 40))
            for _ in range(100 if LONG else 5):
                crowd = [server.socket() for _ in range(100)]
                for s in crowd:
                    s.close()
            began = time.monotonic()
            self.assertEqual(server.get("/health")[0], 200)
            if MEASURED:  # G22
                self.assertLess(time.monotonic() - began, 1)
            print(f"figure: server, flood: {10000 if LONG else 500} connections with 40 descriptors, "
                  f"answers {(time.monotonic() - began) * 1000:.0f} ms behind them")
            self.assertEqual(self.settled(server), before)


@unittest.skipUnless(LONG, "takes a minute; scripts/check long")
class Overload(WithCrowd):
    """Ten times as many requests as it can do, a tenth of them from clients that go away."""
    ROUNDS, SECONDS = 4, 6
    CLIENTS = 48
    BODY = json.dumps({"inputs": ["a b c " * 20] * 4})

    def answers(self, server, clients, seconds, rate=None):
        """Requests that got vectors and that were made, a second: of clients that each ask again when they are answered,
        or, with a rate, when the next request is due."""
        lock, began = threading.Lock(), time.monotonic()
        made = good = 0

        def client(seed):
            nonlocal made, good
            pick, connection = random.Random(seed), server.connect()
            while time.monotonic() < began + seconds:
                with lock:
                    due = began + made / rate if rate else 0
                    made += 1
                time.sleep(max(0, due - time.monotonic()))
                if rate and pick.random() < 0.1:
                    connection.request("POST", "/embed", self.BODY)
                    connection.close()
                    continue
                status, _, data = server.ask("POST", "/embed", self.BODY, connection=connection)
                with lock:
                    good += status == 200 and data == self.expected
            connection.close()

        threads = [threading.Thread(target=client, args=(seed,)) for seed in range(clients)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        return good / (time.monotonic() - began), made / seconds  # answers come when no more is asked, too

    def test_ten_times_too_much(self):
        with Server("-t", "1", "--isa", "ref", "--max-queue", "8", perturbed=False) as server:
            idle = memory(server, "VmRSS")
            self.expected = server.ask("POST", "/embed", self.BODY)[2]
            before = self.settled(server)
            rounds = []
            for _ in range(self.ROUNDS):  # in turns, because other programs run here too
                most, _ = self.answers(server, 4, self.SECONDS)
                rounds.append((most, *self.answers(server, self.CLIENTS, self.SECONDS, 12 * most)))
            peak, held, asked = (sum(values) / self.ROUNDS for values in zip(*rounds))
            grown = memory(server, "VmHWM") - idle
            self.assertEqual(self.settled(server), before)
            self.assertEqual(server.ask("POST", "/embed", self.BODY)[2], self.expected)
        print(f"figure: server, overload: {asked / peak:.1f} times its {peak:.1f} requests a second for {self.ROUNDS * self.SECONDS} s, "
              f"{held / peak:.0%} of them held, {grown:.1f} MiB more memory")
        self.assertGreater(asked, 9 * peak)
        self.assertGreater(held, 0.8 * peak)
        self.assertLess(grown, 64 + 8 * len(self.BODY) / (1 << 20))


if not BUILT:
    load_tests = without_server

if __name__ == "__main__":
    unittest.main()
