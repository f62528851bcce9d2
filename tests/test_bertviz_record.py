#!/usr/bin/env python3
"""What `bert attention --format bertviz` writes is still what the real bertviz opened: test_bertviz_record.py BERT

The records are made by tests/check_bertviz.py --record.
"""
import json
import pathlib
import subprocess
import sys
import unittest

ROOT = pathlib.Path(__file__).resolve().parent.parent
BERT = sys.argv.pop(1)


def flat(values):
    return [x for v in values for x in flat(v)] if isinstance(values, list) else [values]


def shape(values):
    return [len(values)] + shape(values[0]) if isinstance(values, list) else []


class Bertviz(unittest.TestCase):
    def check(self, name):
        record = json.loads((ROOT / f"tests/data/bertviz/{name}.json").read_text(encoding="utf-8"))
        model = ROOT / "tests/data/models" / record["model"]
        command = [BERT, "attention", "-m", model, "--format", "bertviz", *record["arguments"]]
        found, wanted = json.loads(subprocess.run(command, check=True, capture_output=True).stdout), record["file"]
        self.assertEqual(set(found), set(wanted))
        self.assertEqual(found["tokens"], wanted["tokens"])
        self.assertEqual(found["sentence_b_start"], wanted["sentence_b_start"])
        self.assertEqual(shape(found["attention"]), shape(wanted["attention"]))
        self.assertEqual(flat(found["attention"]), flat(wanted["attention"]))  # the same bits on every machine

    def test_single(self):
        self.check("single")

    def test_pair(self):
        self.check("pair")


if __name__ == "__main__":
    unittest.main()
