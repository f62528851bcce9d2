#!/usr/bin/env python3
"""examples/patch.c on the tiny model: check_patch.py PATCH MODEL

Whatever the model, patching the embeddings of the tokens that differ is the clean run, patching them behind the last
layer changes nothing at [MASK], and with [MASK] itself it is the other way round.
"""
import re
import subprocess
import sys


def main():
    program, model = sys.argv[1:]
    texts = ("what can he [MASK]?", "what can they [MASK]?")
    said = subprocess.run([program, model, *texts], check=True, capture_output=True, text=True).stdout
    clean, corrupted = re.search(r"clean (\S+)  corrupted (\S+)", said).groups()
    rows = re.findall(r"^layer +(\d+) +(\S+) +(\S+)$", said, flags=re.M)
    checks = {
        "a row for each layer": [int(row[0]) for row in rows] == [0, 1, 2, 3],
        "the corrupted run differs": clean != corrupted,
        "layer 0": rows[0][1:] == (clean, corrupted),
        "last layer": rows[-1][1:] == (corrupted, clean),
        "between": len({row[1] for row in rows}) == len(rows),
        "texts of other lengths are refused": subprocess.run(
            [program, model, texts[0], "what [MASK]"], capture_output=True).returncode == 1,
    }
    print(said, *[f"not so: {what}" for what, holds in checks.items() if not holds], sep="\n")
    failed = sum(not holds for holds in checks.values())
    print(f"{len(checks) - failed} passed, {failed} failed")
    sys.exit(failed > 0)


if __name__ == "__main__":
    main()
