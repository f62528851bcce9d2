"""bert bench: the figures that scripts read, and that they are of what was asked for."""
import json
import pathlib
import tempfile

from command import TINY, bert, unittest

PASS = ["batch", "length", "threads", "isa", "gemm", "seconds", "tokens_per_s", "gflops", "peak_fraction", "rss_mb"]
TOKENIZER = ["mb_per_s", "tokens_per_s", "threads", "open_ms"]


def figures(*args, **more):
    return json.loads(bert("bench", "--repeat", "2", "--json", *args, check=0, **more).stdout)


class Model(unittest.TestCase):
    def test_each_shape_has_its_figures(self):
        rows = figures("-m", TINY, "--shapes", "1x8,3x5", "-t", "2")
        self.assertEqual([list(row) for row in rows], [PASS, PASS])
        self.assertEqual([(row["batch"], row["length"], row["threads"]) for row in rows], [(1, 8, 2), (3, 5, 2)])
        for row in rows:
            self.assertAlmostEqual(row["tokens_per_s"] * row["seconds"], row["batch"] * row["length"], 6)
            self.assertGreater(row["peak_fraction"], 0)
            self.assertLess(row["peak_fraction"], 1)
            self.assertGreater(row["rss_mb"], 1)

    def test_isa_is_the_one_that_was_forced(self):
        self.assertEqual(figures("-m", TINY, "--shapes", "1x4", "--isa", "ref")[0]["isa"], "ref")

    def test_text_has_a_row_for_each_shape(self):
        rows = bert("bench", "-m", TINY, "--shapes", "1x8,2x4", "--repeat", "1", check=0).stdout.decode().splitlines()
        self.assertEqual([row.split()[0] for row in rows[-2:]], ["1x8", "2x4"])

    def test_ending_or_format_decides(self):
        with tempfile.TemporaryDirectory() as folder:
            for what in (("-m", TINY, "--shapes", "1x4"), ("--tokenizer", TINY)):
                for name, more, is_json in (("x.json", (), True), ("x.txt", (), False), ("x", (), False),
                                            ("x.txt", ("--format", "json"), True), ("x.json", ("--format", "text"), False)):
                    path = pathlib.Path(folder, name)
                    bert("bench", "--repeat", "1", *what, "-o", str(path), *more, check=0)
                    self.assertEqual(path.read_text().startswith("[{"), is_json, (what, name, more))
                done = bert("bench", *what, "-o", str(pathlib.Path(folder, "x.csv")), check=2)
                self.assertIn(b"the ending .csv: expected one of text, json", done.stderr)

    def test_wrong_shapes_are_refused(self):
        for shapes in ("", "8", "1x", "x8", "0x8", "1x8,", "1x8;2x8", "-1x8", "1x99999999999"):
            with self.subTest(shapes):
                bert("bench", "-m", TINY, "--shapes", shapes, check=2)
        self.assertIn(b"positions", bert("bench", "-m", TINY, "--shapes", "1x100000", check=1).stderr)


class Tokenizer(unittest.TestCase):
    def test_figures(self):
        for threads in (1, 3):
            row, = figures("--tokenizer", TINY, "-t", str(threads))
            self.assertEqual((list(row), row["threads"]), (TOKENIZER, threads))
            self.assertGreater(min(row.values()), 0)

    def test_texts_from_a_file_and_from_stdin(self):
        lines = "the fox\n" * 3 + "\n" + "jumps"
        with tempfile.TemporaryDirectory() as folder:
            path = pathlib.Path(folder, "texts")
            path.write_text(lines)
            for args, stdin in ((str(path), ""), ("-", lines)):
                done = bert("bench", "--repeat", "1", "--tokenizer", TINY, args, "-t", "4", stdin=stdin, check=0)
                self.assertRegex(done.stdout.decode(), r"texts +5, ")

    def test_nothing_to_read(self):
        bert("bench", "--tokenizer", TINY, "-", check=1)
        bert("bench", "--tokenizer", TINY, "no-such-file", check=1)
        bert("bench", "--tokenizer", TINY, "-m", TINY, check=2)
