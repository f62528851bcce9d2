"""Texts as they come: lines, pairs, JSON lines, ids, and what is wrong with them."""
import json
import struct
import subprocess
import time

from command import BERT, Case, FOX, TINY, bert, environment, lines, npy


def tokens(*args, stdin=b"", check=0):
    return [" ".join(line["tokens"]) for line in lines(bert("tokenize", "-m", TINY, *args, stdin=stdin, check=check))]


class Lines(Case):
    def test_lines(self):
        self.assertEqual(tokens(stdin="a b\n\nc"), ["[CLS] a b [SEP]", "[CLS] [SEP]", "[CLS] c [SEP]"])
        self.assertEqual(tokens(stdin="a\r\nb\r\n"), ["[CLS] a [SEP]", "[CLS] b [SEP]"])
        self.assertEqual(tokens(stdin=""), [])
        self.assertEqual(tokens("", "b"), ["[CLS] [SEP]", "[CLS] b [SEP]"])

    def test_pairs(self):
        self.assertEqual(tokens(stdin="a\tb\tc\n"), ["[CLS] a [SEP] b c [SEP]"])
        self.assertEqual(tokens("--no-pair", stdin="a\tb\n"), ["[CLS] a b [SEP]"])
        self.assertEqual(tokens("--pair", "b", "a"), ["[CLS] a [SEP] b [SEP]"])
        self.assertEqual(tokens("--pair", "", "a"), ["[CLS] a [SEP] [SEP]"])
        self.assertEqual(tokens("a\tb"), ["[CLS] a b [SEP]"])

    def test_jsonl(self):
        done = bert("tokenize", "-m", TINY, "--jsonl", check=0,
                    stdin='{"id": {"n" : 1.50, "s":"\\u00e9"}, "text":"a"}\n{"text":"a","pair":"b","id":"x"}\n{"text":"b","pair":null}\n')
        first, second, third = done.stdout.decode().splitlines()
        self.assertTrue(first.startswith('{"id":{"n" : 1.50, "s":"\\u00e9"},"ids":'), first)
        self.assertEqual(json.loads(second)["tokens"], ["[CLS]", "a", "[SEP]", "b", "[SEP]"])
        self.assertNotIn("id", json.loads(third))

    def test_nul_is_text(self):
        with_nul = lines(bert("encode", "-m", TINY, "--jsonl", stdin='{"text":"a\\u0000b"}\n', check=0))
        self.assertEqual(with_nul[0]["text"], "a\0b")
        raw = lines(bert("encode", "-m", TINY, stdin=b"a\0b\n", check=0))
        self.assertEqual(raw, with_nul)

    def test_bad_lines(self):
        bad = '{"text":"a"}\nnot json\n{"text":3}\n[]\n{"text":"b","pair":7}\n{"id":1}\n\n{"text":"a","text":"b"}\n{"text":"c"}\n'
        done = bert("tokenize", "-m", TINY, "--jsonl", stdin=bad, check=1)
        self.assertEqual([line["tokens"][1] for line in lines(done)], ["a", "c"])
        said = done.stderr.decode().splitlines()
        self.assertEqual(len(said), 7)
        for number, line in zip(range(2, 9), said):
            self.assertTrue(line.startswith(f"bert: stdin: line {number}: "), line)
        for name in ("tokenize", "encode"):
            failed = bert(name, "-m", TINY, "--jsonl", "--on-error", "fail", stdin=bad, check=1)
            self.assertEqual(len(lines(failed)), 1)
            nulls = lines(bert(name, "-m", TINY, "--jsonl", "--on-error", "null", stdin=bad, check=1))
            self.assertEqual(["error" in line for line in nulls], [False] + 7 * [True] + [False])
            self.assertEqual(nulls[5]["id"], 1)

    def test_errors_of_one_line(self):
        long = " ".join(["a"] * 30)
        text = f"b\n{long}\nc\n"
        for name in ("tokenize", "encode"):
            done = bert(name, "-m", TINY, "--max-length", "10", "--truncation", "error", stdin=text, check=1)
            self.assertEqual(len(lines(done)), 2)
            self.assertRegex(done.stderr.decode(), r"^bert: stdin: line 2: ")
        done = bert("encode", "-m", TINY, "--what", "last_hidden_state", "--max-length", "10", "--truncation", "error", stdin=text, check=1)
        self.assertEqual(len(lines(done)), 2)
        alone = bert("attention", "-m", TINY, "--max-length", "10", "--truncation", "error", long, check=1)
        self.assertEqual(alone.stdout, b"")

    def test_truncation_is_told(self):
        long = " ".join(["a"] * 100)
        done = bert("encode", "-m", TINY, stdin=f"b\n{long}\n{long}\n", check=0)
        self.assertEqual([line.get("truncated") for line in lines(done)], [None, 38, 38])
        self.assertEqual([line["tokens"] for line in lines(done)], [3, 64, 64])
        said = done.stderr.decode()
        self.assertIn("bert: warning: stdin: line 2: truncated to 64 tokens, 38 were cut off\n", said)
        self.assertIn("bert: warning: 2 texts were truncated\n", said)
        strict = bert("encode", "-m", TINY, "--strict", stdin=f"b\n{long}\n", check=1)
        self.assertEqual(len(lines(strict)), 1)
        self.assertEqual(bert("tokenize", "-m", TINY, long, check=0).stderr, b"")

    def test_invalid_utf8(self):
        done = bert("encode", "-m", TINY, stdin=b"fine\nbr\xffoken \xe2\x82\n", check=0)
        self.assertEqual(lines(done)[1]["text"], "br\ufffdoken \ufffd")
        self.assertEqual(done.stderr.decode(), "bert: warning: stdin: line 2: not valid UTF-8 at byte 2 and elsewhere, read as U+FFFD\n")
        same = bert("encode", "-m", TINY, "br\ufffdoken \ufffd", check=0)
        self.assertEqual(lines(done)[1]["embedding"], lines(same)[0]["embedding"])
        in_json = bert("encode", "-m", TINY, "--jsonl", stdin=b'{"text":"br\xffoken \xe2\x82"}\n', check=0)
        self.assertEqual(lines(in_json)[0]["text"], "br\ufffdoken \ufffd")
        self.assertIn(b"line 1", in_json.stderr)
        bert("encode", "-m", TINY, "--strict", stdin=b"br\xffoken\n", check=1)

    def test_ten_megabytes(self):
        done = bert("encode", "-m", TINY, stdin=b"word " * 2_000_000 + b"\nshort\n", check=0, timeout=120)
        first, second = lines(done)
        self.assertEqual((first["tokens"], first["truncated"] > 1_000_000, second["text"]), (64, True, "short"))
        self.assertIn(b"line 1: truncated to 64", done.stderr)

    def test_long_lines_between_short_ones(self):
        """A line of more than 1 MB keeps the memory that it was read into, and what had been read behind it moves."""
        n = 300_000
        counts = [1, n, n, 2, 3, n, 1]
        for end in ("\n", ""):
            done = bert("tokenize", "-m", TINY, "--format", "text", "--no-special-tokens", check=0,
                        stdin="\n".join("a b " * n for n in counts) + end)
            self.assertEqual(done.stdout.decode().splitlines(), [("a b " * n)[:-1] for n in counts])

    def test_many_lines(self):
        texts = [f"{FOX} {i}" for i in range(700)]
        done = lines(bert("encode", "-m", TINY, stdin="\n".join(texts), check=0))
        self.assertEqual([line["text"] for line in done], texts)

    def test_answers_before_the_end(self):
        with subprocess.Popen([BERT, "encode", "-m", TINY], stdin=subprocess.PIPE, stdout=subprocess.PIPE, env=environment()) as running:
            for text in ("one", "two"):
                running.stdin.write(text.encode() + b"\n")
                running.stdin.flush()
                self.assertEqual(json.loads(running.stdout.readline())["text"], text)
            running.stdin.close()
            self.assertEqual(running.wait(10), 0)


class Ids(Case):
    def ids_of(self, text):
        return lines(bert("tokenize", "-m", TINY, text, check=0))[0]["ids"]

    def test_lists(self):
        ids = self.ids_of(FOX)
        wanted = lines(bert("encode", "-m", TINY, FOX, check=0))[0]["embedding"]
        path = self.folder / "ids.jsonl"
        path.write_text(json.dumps(ids) + "\n[2, 99999, 3]\n[]\n[2.5]\nx\n" + json.dumps(ids[:3]))
        done = bert("encode", "-m", TINY, "--ids", str(path), check=1)
        self.assertEqual([line["tokens"] for line in lines(done)], [len(ids), 3])
        self.assertEqual(lines(done)[0]["embedding"], wanted)
        self.assertNotIn("text", lines(done)[0])
        self.assertEqual([f"line {n}: " in said for n, said in zip(range(2, 6), done.stderr.decode().splitlines())], [True] * 4)

    def test_npy(self):
        ids = self.ids_of("the cat")
        wanted = bert("encode", "-m", TINY, "--what", "last_hidden_state", "--format", "npy", "the cat", "the cat", check=0).stdout
        for code, kind in (("q", "<i8"), ("i", "<i4"), ("H", "<u2")):
            header = f"{{'descr': '{kind}', 'fortran_order': False, 'shape': (2, {len(ids)}), }}".ljust(117) + "\n"
            path = self.folder / "ids.npy"
            path.write_bytes(b"\x93NUMPY\x01\x00" + struct.pack("<H", len(header)) + header.encode() + struct.pack(f"<{2 * len(ids)}{code}", *ids, *ids))
            done = bert("encode", "-m", TINY, "--ids", str(path), "--what", "last_hidden_state", "--format", "npy", check=0)
            self.assertEqual(npy(done.stdout), npy(wanted))
        path.write_bytes(path.read_bytes()[:-1])
        self.assertIn(b"row 2", bert("encode", "-m", TINY, "--ids", str(path), check=1).stderr)
        header = "{'descr': '<i8', 'fortran_order': False, 'shape': (576460752303423488, 0), }".ljust(117) + "\n"
        path.write_bytes(b"\x93NUMPY\x01\x00" + struct.pack("<H", len(header)) + header.encode())
        self.refused(1, "its rows have no ids", "encode", "-m", TINY, "--ids", str(path))
        self.refused(1, "ids.npy: cannot open", "encode", "-m", TINY, "--ids", str(self.folder / "no" / "ids.npy"))
        self.refused(2, "--ids takes the place", "encode", "-m", TINY, "--ids", str(path), "text")
