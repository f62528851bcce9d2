"""The command as a filter: answers as lines come, order, bounded memory, and beside other filters."""
import json
import os
import pty
import shutil
import subprocess
import threading
import unittest

from command import BERT, Case, FOX, TINY, bert, cost, environment, lines, measured


def shell(script, stdin=b""):
    """Runs it in a folder that the script may name as $FOLDER; $ENCODE is `bert encode` of the tiny model."""
    env = {**environment(), "ENCODE": f"{BERT} encode -m {TINY}", "BERT": BERT, "MODEL": TINY}
    return subprocess.run(["bash", "-o", "pipefail", "-c", script], input=stdin, capture_output=True, env=env, timeout=120, check=False)


def texts(n):
    return "".join(f"{FOX} {i}\n" for i in range(n)).encode()


class Stream(Case):
    def test_answers_when_input_pauses(self):
        """A whole line is answered though a part of the next one has come."""
        with subprocess.Popen([BERT, "encode", "-m", TINY], stdin=subprocess.PIPE, stdout=subprocess.PIPE, env=environment()) as running:
            for sent, answered in ((b"one\ntw", ["one"]), (b"o\nthree\nfo", ["two", "three"]), (b"ur\n", ["four"])):
                running.stdin.write(sent)
                running.stdin.flush()
                self.assertEqual([json.loads(running.stdout.readline())["text"] for _ in answered], answered)
            running.stdin.write(b"no end of a line")
            out, _ = running.communicate(timeout=30)
            self.assertEqual(json.loads(out)["text"], "no end of a line")

    def test_answers_a_line_typed_at_once(self):
        main, terminal = pty.openpty()
        with subprocess.Popen([BERT, "encode", "-m", TINY], stdin=terminal, stdout=subprocess.PIPE, stderr=subprocess.PIPE, env=environment()) as running:
            os.close(terminal)
            for text in ("typed", "and more"):
                os.write(main, text.encode() + b"\n")
                self.assertEqual(json.loads(running.stdout.readline())["text"], text)
            os.write(main, b"\x04")
            out, err = running.communicate(timeout=30)
        os.close(main)
        self.assertEqual((running.returncode, out, err), (0, b"", b"bert: warning: reading texts from the terminal, one a line; Ctrl-D ends\n"))

    def test_order_and_bits_of_a_slow_and_a_fast_stream(self):
        """Windows are filled differently; what comes out is the same."""
        given = texts(600)
        fast = bert("encode", "-m", TINY, stdin=given, check=0).stdout
        with subprocess.Popen([BERT, "encode", "-m", TINY], stdin=subprocess.PIPE, stdout=subprocess.PIPE, env=environment()) as running:
            got = []
            reader = threading.Thread(target=lambda: got.append(running.stdout.read()))
            reader.start()
            for at in range(0, len(given), 1001):
                os.write(running.stdin.fileno(), given[at:at + 1001])
            running.stdin.close()
            reader.join()
        self.assertEqual(got[0], fast)

    def peak(self, produce, *args):
        """Peak memory in bytes, exit status, and what it said; `produce` writes to the stream that it is given."""
        report = self.folder / "cost"
        running = subprocess.Popen(measured(report, "encode", "-m", TINY, "-t", "1", *args), stdin=subprocess.PIPE,
                                   stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, env=environment(False))
        produce(running.stdin)
        try:
            running.stdin.close()
        except BrokenPipeError:
            pass
        said = running.stderr.read().decode()
        running.stderr.close()
        status = running.wait()
        return cost(report)[1], status, said

    @unittest.skipIf("BERT_TEST_MODE" in os.environ, "memory of a sanitizer")
    def test_memory(self):
        few, status, _ = self.peak(lambda out: out.write(texts(10)))
        self.assertEqual(status, 0)
        many, status, _ = self.peak(lambda out: out.write(texts(20000)))
        self.assertEqual(status, 0)
        self.assertLess(many - few, 16 << 20)
        ten, status, said = self.peak(lambda out: out.write(b"word " * 2_000_000))
        self.assertEqual((status, said), (0, "bert: warning: stdin: line 1: truncated to 64 tokens, 1999938 were cut off\n"))
        self.assertLess(ten - few, 64 << 20)

        def endless(out):
            for _ in range(200):
                out.write(bytes(1 << 20))
            out.write(b"\n" + texts(1))
        skipped, status, said = self.peak(endless, "--max-line", "1M")
        self.assertEqual((status, said), (1, "bert: stdin: line 1: longer than 1048576 bytes (--max-line)\n"))
        self.assertLess(skipped - few, 16 << 20)

    def test_a_line_too_long(self):
        """What is too long is a bad line; one of exactly that length, and those behind it, are not."""
        given = b"a" * 10 + b"\n" + b"b" * 11 + b"\n\n" + b"c" * 3000000 + b"\nd\n" + b"e" * 11
        for chunk in (len(given), 7001):
            with subprocess.Popen([BERT, "encode", "-m", TINY, "--max-line", "10"], stdin=subprocess.PIPE,
                                  stdout=subprocess.PIPE, stderr=subprocess.PIPE, env=environment()) as running:
                for at in range(0, len(given), chunk):
                    running.stdin.write(given[at:at + chunk])
                    running.stdin.flush()
                out, err = running.communicate(timeout=30)
            self.assertEqual([json.loads(line)["text"] for line in out.splitlines()], ["a" * 10, "", "d"])
            self.assertEqual((running.returncode, err.decode()), (1, "".join(
                f"bert: stdin: line {n}: longer than 10 bytes (--max-line)\n" for n in (2, 4, 6))))
        nulls = lines(bert("encode", "-m", TINY, "--max-line", "10", "--on-error", "null", stdin=given, check=1))
        self.assertEqual(["error" in line for line in nulls], [False, True, False, True, False, True])
        ids = self.folder / "ids.jsonl"
        ids.write_text("[2, 3]\n[2, 5, 5, 5, 5, 3]\n[2, 3]\n")
        done = bert("encode", "-m", TINY, "--ids", str(ids), "--max-line", "10", check=1)
        self.assertEqual((len(lines(done)), done.stderr.decode().count("line 2: longer than 10 bytes")), (2, 1))

    def test_an_endless_line(self):
        """It is told before its end, which may never come."""
        with open("/dev/zero", "rb") as zeros:
            done = subprocess.run([BERT, "encode", "-m", TINY, "--on-error", "fail"], stdin=zeros, capture_output=True, env=environment(), timeout=60, check=False)
        self.assertEqual((done.returncode, done.stdout, done.stderr), (1, b"", b"bert: stdin: line 1: longer than 67108864 bytes (--max-line)\n"))

    def test_truncated_texts_are_counted(self):
        """Ten are named."""
        done = bert("encode", "-m", TINY, stdin=("a " * 70 + "\n") * 40, check=0)
        said = done.stderr.decode().splitlines()
        self.assertEqual((len(said), said[9], said[10]), (11,
            "bert: warning: stdin: line 10: truncated to 64 tokens, 8 were cut off; further ones are counted",
            "bert: warning: 40 texts were truncated"))

    def test_progress(self):
        """Of a file it is known how much is left, also if another has read its beginning; of a pipe it is not.
        The first answers do not wait for as many texts as later ones are worked on with."""
        path = self.folder / "texts.txt"
        path.write_bytes(texts(2000))
        with path.open("rb") as file:
            done = subprocess.run([BERT, "encode", "-m", TINY, "--progress"], stdin=file, capture_output=True, env=environment(), check=True)
        drawn = done.stderr.decode().strip().split("\r")
        self.assertRegex(drawn[0], r"^(\[[#.]{30}\] +\d+ % \d+ texts, [\d.]+ a second, \d+:\d\d left)?$")
        self.assertRegex(drawn[1], r"^\[[#.]{30}\] +\d+ % \d+ texts, [\d.]+ a second, \d+:\d\d left$")
        with path.open("rb") as file:
            os.lseek(file.fileno(), path.stat().st_size // 2, os.SEEK_SET)
            done = subprocess.run([BERT, "encode", "-m", TINY, "--progress"], stdin=file, capture_output=True, env=environment(), check=True)
        self.assertRegex(done.stderr.decode(), r"\] +2 % 16 texts")
        piped = bert("encode", "-m", TINY, "--progress", stdin=texts(2000), check=0).stderr.decode()
        self.assertRegex(piped, r"^\r\d+ texts, [\d.]+ a second")
        self.assertNotIn("left", piped)

    def test_warnings_come_once(self):
        """Also where --max-mem has no room for the weights and the model is opened a second time."""
        for name in os.listdir(TINY):
            shutil.copy(os.path.join(TINY, name), self.folder)
        config = json.loads((self.folder / "config.json").read_text())
        (self.folder / "config.json").write_text(json.dumps({**config, "num_hidden_layers": 2}))
        plain = bert("encode", "-m", str(self.folder), FOX, check=0)
        self.assertRegex(plain.stderr.decode(), r"^bert: warning: .*holds more layers than the 2 of config.json; the others are not used\n$")
        tight = bert("encode", "-m", str(self.folder), "--max-mem", "300K", FOX, check=0)
        self.assertEqual((tight.stdout, tight.stderr), (plain.stdout, plain.stderr))


class Filters(Case):
    def test_head(self):
        done = shell("$ENCODE | head -n 2; echo ${PIPESTATUS[0]}", texts(5000))
        first, second, status = done.stdout.decode().splitlines()
        self.assertEqual([json.loads(line)["text"] for line in (first, second)], [f"{FOX} 0", f"{FOX} 1"])
        self.assertEqual((status, done.stderr), ("141", b""))

    def whole(self, n):
        return bert("encode", "-m", TINY, stdin=texts(n), check=0).stdout

    def test_split(self):
        done = shell("cd '%s' && split -l 100 --filter='$ENCODE -t 1 > $FILE.jsonl' - part- && cat part-*" % self.folder, texts(250))
        self.assertEqual((done.returncode, done.stdout, done.stderr), (0, self.whole(250), b""))
        self.assertEqual(len(os.listdir(self.folder)), 3)

    def test_xargs(self):
        """Processes side by side; each writes its own file, whole or not at all."""
        for n, part in enumerate((texts(120), texts(7), b"")):
            (self.folder / f"{n}.txt").write_bytes(part)
        done = shell("cd '%s' && ls *.txt | xargs -P 3 -I '{}' sh -c '$ENCODE -t 1 -o {}.jsonl < {}'" % self.folder)
        self.assertEqual((done.returncode, done.stderr), (0, b""))
        for n, count in enumerate((120, 7, 0)):
            self.assertEqual((self.folder / f"{n}.txt.jsonl").read_bytes(), self.whole(count))
        arguments = shell("printf '%s\\0' one two three four | xargs -0 -P 2 -n 1 $ENCODE -t 1 | sort")
        self.assertEqual(arguments.stdout.splitlines(), sorted(bert("encode", "-m", TINY, "one", "two", "three", "four", check=0).stdout.splitlines()))

    @unittest.skipIf(shutil.which("parallel") is None, "GNU parallel is not installed")
    def test_parallel(self):
        env_quiet = "PARALLEL_HOME='%s' parallel --will-cite" % self.folder
        done = shell(env_quiet + " --pipe -k -j 2 --block 4k $ENCODE -t 1", texts(300))
        self.assertEqual((done.returncode, done.stdout), (0, self.whole(300)), done.stderr[-500:])

    def test_joined(self):
        """An id goes through, so that the answer finds its row again."""
        rows = b"".join(b'{"id":%d,"text":"row %d"}\n' % (i, i) for i in range(50))
        done = shell("shuf --random-source=/dev/zero | $ENCODE --jsonl | sort -t: -k2n", rows)
        self.assertEqual(done.stdout, bert("encode", "-m", TINY, "--jsonl", stdin=rows, check=0).stdout)
