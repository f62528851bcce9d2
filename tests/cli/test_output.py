"""Where data goes: files, pipes, devices, and what happens when it cannot."""
import os
import signal
import socket
import subprocess
import threading
import time
import unittest

from command import BERT, Case, FOX, TINY, bert, environment, lines


class Files(Case):
    def test_file_like_stdout(self):
        path = self.folder / "out.jsonl"
        done = bert("encode", "-m", TINY, "-o", str(path), FOX, check=0)
        self.assertEqual(done.stdout, b"")
        self.assertEqual(path.read_bytes(), bert("encode", "-m", TINY, FOX, check=0).stdout)
        self.assertEqual(os.listdir(self.folder), ["out.jsonl"])

    def test_old_file_stays_when_it_fails(self):
        path = self.folder / "out.npz"
        path.write_text("old")
        bert("encode", "-m", str(self.folder / "none"), "-o", str(path), FOX, check=1)
        bert("encode", "-m", TINY, "--truncation", "error", "--on-error", "fail", "-o", str(path), "a " * 100, check=1)
        self.assertEqual(path.read_text(), "old")
        self.assertEqual(os.listdir(self.folder), ["out.npz"])

    def test_permissions_and_links(self):
        path, link = self.folder / "out.jsonl", self.folder / "link.jsonl"
        path.write_text("old")
        path.chmod(0o640)
        link.symlink_to("out.jsonl")
        bert("encode", "-m", TINY, "-o", str(link), FOX, check=0)
        self.assertTrue(link.is_symlink())
        self.assertTrue(path.read_text().startswith('{"text"'))
        self.assertEqual(path.stat().st_mode & 0o777, 0o640)
        dangling = self.folder / "dangling.jsonl"
        dangling.symlink_to(self.folder / "new.jsonl")
        bert("encode", "-m", TINY, "-o", str(dangling), FOX, check=0)
        self.assertTrue((self.folder / "new.jsonl").read_text().startswith('{"text"'))
        bert("encode", "-m", TINY, "-o", str(self.folder / ("n" * 249 + ".jsonl")), FOX, check=0)

    def test_places_that_cannot_be_written(self):
        self.refused(1, "no/out.jsonl: cannot create it: No such file", "encode", "-m", TINY, "-o", str(self.folder / "no" / "out.jsonl"), FOX)
        (self.folder / "is.npz").mkdir()
        self.refused(1, "is.npz: expected a file to write, found a folder", "encode", "-m", TINY, "-o", str(self.folder / "is.npz"), FOX)
        loop = self.folder / "loop.npz"
        loop.symlink_to(loop)
        self.refused(1, "loop.npz: cannot write it", "encode", "-m", TINY, "-o", str(loop), FOX)
        self.refused(2, "--output: expected the name of a file", "encode", "-m", TINY, "-o", "", FOX)
        self.refused(1, "/dev/fd/99: cannot write it: Bad file", "encode", "-m", TINY, "-o", "/dev/fd/99", FOX)

    def test_own_descriptors(self):
        """Other names of stdout go on where it stands, and those behind us go on where we stopped."""
        wanted = bert("tokenize", "-m", TINY, "a", check=0).stdout
        for name in ("/dev/stdout", "/dev/fd/1", "/proc/self/fd/1", "-"):
            path = self.folder / "all.txt"
            with open(path, "wb") as file:
                file.write(b"before\n")
                file.flush()
                subprocess.run([BERT, "tokenize", "-m", TINY, "-o", name, "--format", "jsonl", "a"], stdout=file, env=environment(), check=True)
                os.write(file.fileno(), b"behind\n")
            self.assertEqual(path.read_bytes(), b"before\n" + wanted + b"behind\n", name)

    def test_a_record_is_one_line_for_every_reader(self):
        """Python's splitlines, JavaScript and terminals see line ends and commands where JSON sees characters."""
        text = "a\u2028b\u2029c\u0085d\x7fe\x9bf\u202eg\x0bh\"\\\u00e9"
        done = bert("encode", "-m", TINY, text, text, check=0)
        self.assertEqual([line["text"] for line in lines(done)], [text, text])
        self.assertRegex(done.stdout.decode(), r'"text":"a\\u2028b\\u2029c\\u0085d\\u007fe\\u009bf\\u202eg\\u000bh\\"\\\\\u00e9"')

    def test_ending_is_of_the_name(self):
        (self.folder / "a.b").mkdir()
        for command in ("tokenize", "encode"):
            bert(command, "-m", TINY, "-o", str(self.folder / "a.b" / command), "a", check=0)
            self.assertEqual(len((self.folder / "a.b" / command).read_bytes().splitlines()), 1)

    @unittest.skipIf(os.environ.get("BERT_TEST_MODE") == "coverage", "what counts coverage writes files, too")
    def test_file_size_limit(self):
        limited = f"ulimit -f 4; exec '{BERT}' encode -m '{TINY}' -o '{self.folder}/out.jsonl'"
        done = subprocess.run(["bash", "-c", limited], input=(FOX + "\n").encode() * 50, capture_output=True, env=environment())
        self.assertEqual((done.returncode, done.stderr), (1, f"bert: {self.folder}/out.jsonl: cannot write: File too large\n".encode()))
        self.assertEqual(os.listdir(self.folder), [])

    def test_full_disk(self):
        for kind in ("jsonl", "npy", "npz", "safetensors", "f32", "text"):
            self.refused(1, "/dev/full: cannot write: No space left", "encode", "-m", TINY, "-o", "/dev/full", "--format", kind, FOX)
        for args in (("tokenize", "-m", TINY, "a"), ("inspect", TINY), ("attention", "-m", TINY, "a"), ("--help",), ("encode", "--help")):
            with open("/dev/full", "wb") as full:
                done = subprocess.run([BERT, *args], stdout=full, stderr=subprocess.PIPE, env=environment())
            self.assertEqual((done.returncode, done.stderr), (1, b"bert: stdout: cannot write: No space left on device\n"), args)

    def test_devices_fifos_sockets(self):
        wanted = bert("encode", "-m", TINY, FOX, check=0).stdout
        bert("encode", "-m", TINY, "-o", "/dev/null", FOX, check=0)
        self.assertEqual(bert("encode", "-m", TINY, "-o", "/dev/stdout", FOX, check=0).stdout, wanted)
        fifo = self.folder / "fifo"
        os.mkfifo(fifo)
        got = []
        reader = threading.Thread(target=lambda: got.append(fifo.read_bytes()))
        reader.start()
        bert("encode", "-m", TINY, "-o", str(fifo), "--format", "jsonl", FOX, check=0)
        reader.join()
        self.assertEqual(got, [wanted])
        with socket.socket(socket.AF_UNIX) as server:
            server.bind(str(self.folder / "socket"))
            server.listen()
            bert("encode", "-m", TINY, "-o", str(self.folder / "socket"), FOX, check=0)
            with server.accept()[0] as peer, peer.makefile("rb") as stream:
                self.assertEqual(stream.read(), wanted)
        self.assertEqual(sorted(os.listdir(self.folder)), ["fifo", "socket"])

    def test_closed_stdout(self):
        many = (FOX + "\n") * 20000
        for command in (f"'{BERT}' encode -m '{TINY}' | head -1", f"'{BERT}' tokenize -m '{TINY}' | head -1"):
            done = subprocess.run(["bash", "-c", command + "; exit ${PIPESTATUS[0]}"], input=many.encode(), capture_output=True, env=environment())
            self.assertEqual((done.returncode, done.stderr, done.stdout.count(b"\n")), (141, b"", 1))
        done = subprocess.run(["bash", "-c", f"'{BERT}' encode -m '{TINY}' a >&-"], capture_output=True, env=environment())
        self.assertEqual((done.returncode, done.stderr), (141, b""))

    def test_closed_stdin(self):
        done = subprocess.run(["bash", "-c", f"'{BERT}' encode -m '{TINY}' <&-"], capture_output=True, env=environment())
        self.assertEqual((done.returncode, done.stdout, done.stderr), (1, b"", b"bert: stdin: cannot read: Bad file descriptor\n"))
        done = subprocess.run(["bash", "-c", f"'{BERT}' encode -m '{TINY}' a <&-"], capture_output=True, env=environment())
        self.assertEqual((done.returncode, done.stdout, done.stderr), (0, bert("encode", "-m", TINY, "a").stdout, b""))


class Signals(Case):
    def start(self, *args):
        running = subprocess.Popen([BERT, *args], stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE, env=environment())
        running.stdin.write((FOX + "\n").encode())
        running.stdin.flush()
        return running

    def stop(self, running, number):
        began = time.monotonic()
        running.send_signal(number)
        running.wait(10)
        out, err = running.communicate()
        self.assertLess(time.monotonic() - began, 0.5 if "ASAN" not in os.environ.get("BERT_TEST_MODE", "") else 5)
        self.assertEqual((running.returncode, err), (128 + number, b""))
        return out

    def test_waiting_for_input(self):
        for number in (signal.SIGINT, signal.SIGTERM):
            running = self.start("encode", "-m", TINY)
            line = running.stdout.readline()
            self.assertTrue(line.startswith(b'{"text"'))
            self.assertEqual(self.stop(running, number), b"")

    def test_working(self):
        for number, delay in ((signal.SIGINT, 0.3), (signal.SIGTERM, 0.6)):
            running = self.start("encode", "-m", TINY)
            feeder = threading.Thread(target=self.feed, args=(running,))
            feeder.start()
            got = [running.stdout.readline() for _ in range(50)]
            time.sleep(delay)
            out = self.stop_fed(running, number, feeder)
            for line in got + out.splitlines(True):
                self.assertTrue(line.startswith(b'{"text"') and line.endswith(b"}\n"), line[-80:])

    def feed(self, running):
        try:
            while True:
                os.write(running.stdin.fileno(), (FOX + "\n").encode() * 200)
        except OSError:
            pass

    def stop_fed(self, running, number, feeder):
        chunks = []
        reader = threading.Thread(target=lambda: chunks.append(running.stdout.read()))
        began = time.monotonic()
        running.send_signal(number)
        reader.start()
        running.wait(10)
        self.assertLess(time.monotonic() - began, 1 if "BERT_TEST_MODE" not in os.environ else 5)
        reader.join()
        feeder.join()
        self.assertEqual((running.returncode, running.stderr.read()), (128 + number, b""))
        for stream in (running.stdin, running.stdout, running.stderr):
            stream.close()
        return chunks[0]

    def test_no_file_is_left(self):
        for name, number in (("out.jsonl", signal.SIGTERM), ("out.npz", signal.SIGHUP), ("out.npy", signal.SIGXCPU)):
            path = self.folder / name
            running = self.start("encode", "-m", TINY, "-o", str(path))
            deadline = time.monotonic() + 10
            while not os.listdir(self.folder) and time.monotonic() < deadline:
                time.sleep(0.01)
            self.assertEqual(len(os.listdir(self.folder)), 1)
            self.stop(running, number)
            self.assertEqual(os.listdir(self.folder), [])

    def test_waiting_for_the_writer_of_a_fifo(self):
        os.mkfifo(self.folder / "fifo")
        for args in (("encode", "-m", TINY, "--ids"), ("verify", "-m", TINY, "--against")):
            running = subprocess.Popen([BERT, *args, str(self.folder / "fifo")], stdin=subprocess.DEVNULL, stderr=subprocess.PIPE, env=environment())
            time.sleep(0.5)
            running.send_signal(signal.SIGINT)
            _, err = running.communicate(timeout=10)
            self.assertEqual((running.returncode, err), (130, b""), args)

    def test_nohup(self):
        ignoring = f"trap '' HUP; exec '{BERT}' encode -m '{TINY}'"
        running = subprocess.Popen(["bash", "-c", ignoring], stdin=subprocess.PIPE, stdout=subprocess.PIPE, env=environment())
        running.stdin.write((FOX + "\n").encode())
        running.stdin.flush()
        first = running.stdout.readline()
        running.send_signal(signal.SIGHUP)
        out, _ = running.communicate((FOX + "\n").encode())
        self.assertEqual((running.returncode, out), (0, first))

    def test_reader_that_sleeps(self):
        """Nobody reads our pipe: the command is stuck in a write, and still ends in time."""
        running = self.start("encode", "-m", TINY)
        feeder = threading.Thread(target=self.feed, args=(running,))
        feeder.start()
        time.sleep(1)
        began = time.monotonic()
        running.send_signal(signal.SIGINT)
        self.assertEqual(running.wait(10), 130)
        self.assertLess(time.monotonic() - began, 0.6)
        feeder.join()
        for stream in (running.stdin, running.stdout, running.stderr):
            stream.close()


class Progress(Case):
    def test_only_when_asked(self):
        self.assertEqual(bert("encode", "-m", TINY, FOX, check=0).stderr, b"")
        forced = bert("encode", "-m", TINY, "--progress", stdin=(FOX + "\n") * 600, check=0)
        self.assertRegex(forced.stderr.decode(), r"texts, [\d.]+ a second")
        self.assertEqual(len(lines(forced)), 600)
        self.assertEqual(bert("encode", "-m", TINY, "--progress", "--quiet", FOX, check=0).stderr, b"")
