#!/usr/bin/env python3
"""README's accuracy table is what the parity test measures: check_accuracy.py PARITY_PROGRAM

Our results have the same bits everywhere, so the figures agree to every digit that the table shows. Rows of models
whose weights are not on this machine are not compared."""
import pathlib
import re
import subprocess
import sys

README = pathlib.Path(__file__).resolve().parent.parent / "README.md"
ROW = re.compile(r"\| (\S+) \| `(\w+)` \| (\S+) \| (\S+) \|$", re.MULTILINE)
MEASURED = re.compile(r"parity: (\S+) +(\S+) +rms (\S+) +HF (\S+) +ratio")


def main():
    run = subprocess.run([sys.argv[1]], stderr=subprocess.PIPE, text=True, check=False)
    measured = {(m[1], m[2]): (float(m[3]), float(m[4])) for m in MEASURED.finditer(run.stderr)}
    rows = ROW.findall(README.read_text(encoding="utf-8"))
    passed = failed = 0
    for model, family, ours, theirs in rows:
        if (model, family) not in measured:
            continue
        found = tuple(f"{x:.2e}" for x in measured[model, family])
        if found == (ours, theirs):
            passed += 1
        else:
            failed += 1
            print(f"README says {ours} and {theirs} for {model} {family}, measured: {found[0]} and {found[1]}")
    print(f"{passed} passed, {failed} failed, {len(rows) - passed - failed} skipped")
    return failed > 0 or passed == 0


if __name__ == "__main__":
    sys.exit(main())
