"""What the tests share. BERT names the command; the package is the installed wheel."""
import io
import json
import os
import pathlib
import subprocess

import numpy as np

ROOT = pathlib.Path(__file__).resolve().parents[3]
MODELS = ROOT / "tests/data/models"
TINY = str(MODELS / "tiny-bert")
FOX = "The quick brown fox jumps over the lazy dog."
TEXTS = [FOX, "", "a", "he can run " * 9, "caf\u00e9 \U0001F600 \u4e2d\u6587", ("what can he do", "he can run")] * 7


def bert(*arguments, stdin=None):
    command = [os.environ.get("BERT", ROOT / "build/tools/bert"), *arguments]
    return subprocess.run(command, input=stdin, capture_output=True, check=True).stdout


def npz(*arguments):
    return np.load(io.BytesIO(bert(*arguments, "--format", "npz")))


def as_lines(texts):
    return "".join(("\t".join(t) if isinstance(t, tuple) else t) + "\n" for t in texts).encode()


def json_lines(data):
    return [json.loads(line) for line in data.decode().splitlines()]
