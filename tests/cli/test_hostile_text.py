"""The texts of the hostile corpus through `bert tokenize --no-pair`: the ids that each row of manifest_text.jsonl lists,
for bad UTF-8 too, which --strict refuses line by line; in bounded time and memory."""
import hashlib
import json
import os
import subprocess

from command import DATA, Case, cost, environment, measured

HOSTILE = DATA / "hostile"
MEASURED = "BERT_TEST_MODE" not in os.environ
with open(HOSTILE / "manifest_text.jsonl", encoding="utf-8") as manifest:
    ROWS = [json.loads(line) for line in manifest]


def digest(ids):
    return hashlib.sha256(json.dumps(ids, separators=(",", ":")).encode()).hexdigest()


def ids_of(line):
    """The rest of a line of 2.7 million tokens would take longer to parse than to compute."""
    return json.loads(line[:line.index(b',"tokens"')] + b"}")["ids"]


class HostileText(Case):
    def open(self, row):
        if "gen" not in row:
            return open(HOSTILE / row["file"], "rb")
        file = open(self.folder / "made", "w+b")
        for piece, times in row["gen"]["parts"]:
            file.write(piece.encode() * times)
        file.seek(0)
        return file

    def tokenize(self, text, *args):
        """Status, what it said, ids of each line, seconds of processor time, peak memory in MiB."""
        text.seek(0)
        with open(self.folder / "out", "w+b") as out, open(self.folder / "err", "w+b") as err:
            report = self.folder / "cost"
            status = subprocess.call(measured(report, "tokenize", "-m", str(HOSTILE / "base"), "--no-pair", *args),
                                     stdin=text, stdout=out, stderr=err, env=environment(False))
            out.seek(0)
            err.seek(0)
            seconds, peak = cost(report)
            return status, err.read().decode(), [ids_of(line) for line in out], seconds, peak / (1 << 20)

    def check_ids(self, row, ids):
        wanted = row.get("ids_replace", row.get("ids"))
        if wanted is not None:
            self.assertEqual(ids, wanted)
        elif "ids_sha256" in row:
            self.assertEqual(([len(x) for x in ids][:50], digest(ids)), (row["ids_len"], row["ids_sha256"]))

    def check_cost(self, row, seconds, memory):
        """Ten times what it takes on the machine this was written on, and G2 of the rules for memory, of a long line
        64 MiB for 10 MB of it."""
        generated = "gen" in row
        size = sum(len(piece.encode()) * times for piece, times in row["gen"]["parts"]) if generated else 0
        self.assertLess(seconds, 20 if generated else 1)
        self.assertLess(memory, 32 + 64 * size / 10e6)

    def test_every_row(self):
        self.assertEqual(len(ROWS), 80)
        worst = {"text rows": (0, 0), "text rows made here": (0, 0)}
        for row in ROWS:
            with self.subTest(row["file"]), self.open(row) as text:
                status, said, ids, seconds, memory = self.tokenize(text)
                self.assertEqual((status, len(ids)), (0, row["lines"]))
                self.check_ids(row, ids)
                if row["expect"] == "accept":
                    self.assertEqual(said, "")
                if MEASURED:
                    self.check_cost(row, seconds, memory)
                kind = "text rows made here" if "gen" in row else "text rows"
                worst[kind] = tuple(map(max, worst[kind], (seconds, memory)))
                if row["file"] == "gen:line_10MB":
                    worst["a text of 10 MB"] = (seconds, memory)
        for name, (seconds, memory) in worst.items():
            print(f"figure: {name}: at most {seconds:.3f} s, {memory:.1f} MiB")

    def test_bad_lines_are_named_and_strict_refuses_them(self):
        for row in (row for row in ROWS if row["expect"] == "reject"):
            with self.subTest(row["file"]), self.open(row) as text:
                said = self.tokenize(text)[1].splitlines()
                for (line, byte), message in zip(row["bad_lines"], said, strict=True):
                    self.assertRegex(message, rf"^bert: warning: stdin: line {line}: not valid UTF-8 at byte {byte}\b")
                status, said, ids, _, _ = self.tokenize(text, "--strict")
                self.assertEqual((status, len(said.splitlines())), (1, len(row["bad_lines"])))
                for (line, _), message in zip(row["bad_lines"], said.splitlines()):
                    self.assertRegex(message, rf"^bert: stdin: line {line}: ")
                if "ids" in row:
                    self.assertEqual(ids, [line for line in row["ids"] if line is not None])
