#!/usr/bin/env python3
"""Runs what README.md shows: run_readme.py BERT [README]

  ```console   lines with `$ ` are commands, the lines below each are its output; `…` stands for anything in a line,
               and alone in a line for any lines. Commands that end in a backslash go on in the next line.
  ```sh        is for people: only checked to name scripts that exist and can be run.
  ```c         right below `<!-- file: PATH -->`: must be that file, from its first #include on.

`bert` in a command is BERT. Commands of a block share a folder of their own, in which models/ and scripts/ are the
project's and build/ is where BERT was built. A block that names a model which is not on this machine is skipped.
"""
import os
import pathlib
import re
import subprocess
import sys
import tempfile

ROOT = pathlib.Path(__file__).resolve().parent.parent
BLOCK = re.compile(r"^(?:<!-- file: (?P<file>\S+) -->\n\n?)?```(?P<kind>\w+)\n(?P<text>.*?)^```$", re.M | re.S)


def commands(text):
    """(command, expected output) of a console block."""
    for part in re.split(r"^\$ ", text, flags=re.M)[1:]:
        command, _, output = part.partition("\n")
        while command.endswith("\\"):
            more, _, output = output.partition("\n")
            command = command[:-1] + more.lstrip()
        yield command, output


def matches(expected, found):
    lines = [r"(?:.*\n)*" if line == "…" else ".*".join(map(re.escape, line.split("…"))) + r"\n"
             for line in expected.rstrip().splitlines()]
    return re.fullmatch("".join(lines), found.rstrip() + "\n" if found.strip() else "") is not None


def models():
    return pathlib.Path(os.environ.get("BERT_TEST_MODELS") or ROOT / "models")


def run_console(text, bert):
    missing = [m for m in re.findall(r"models/([\w.-]+)", text) if not (models() / m / "config.json").exists()]
    if missing:
        print(f"skipped, models/{missing[0]} is not here: {text.splitlines()[0]}")
        return None
    with tempfile.TemporaryDirectory() as folder:
        os.symlink(models(), f"{folder}/models")
        os.symlink(ROOT / "scripts", f"{folder}/scripts")
        os.mkdir(f"{folder}/bin")
        os.symlink(bert, f"{folder}/bin/bert")
        os.symlink(bert.parent.parent, f"{folder}/build")
        env = {**os.environ, "PATH": f"{folder}/bin:{os.environ['PATH']}", "NO_COLOR": "1"}
        return all([run_command(*pair, folder, env) for pair in commands(text)])


def run_command(command, expected, folder, env):
    done = subprocess.run(["bash", "-o", "pipefail", "-c", command], cwd=folder, env=env, text=True, timeout=120,
                          stdout=subprocess.PIPE, stderr=subprocess.STDOUT, check=False)
    good = done.returncode == 0 and matches(expected, done.stdout)
    if not good:
        print(f"$ {command}\nexit status {done.returncode}, expected:\n{expected}found:\n{done.stdout}")
    return good


def run_sh(text):
    named = re.findall(r"(?:^|\s)((?:scripts|\.ci)/[\w.]+)", text)
    bad = [name for name in named if not os.access(ROOT / name, os.X_OK)]
    if bad:
        print(f"not a program: {', '.join(bad)}")
    return not bad


def run_file(text, name):
    source = (ROOT / name).read_text(encoding="utf-8")
    good = source[source.index("#include"):] == text
    if not good:
        print(f"the block is not {name} as it is now")
    return good


def main():
    bert = pathlib.Path(sys.argv[1]).resolve()
    readme = pathlib.Path(sys.argv[2]) if len(sys.argv) > 2 else ROOT / "README.md"
    results = []
    for block in BLOCK.finditer(readme.read_text(encoding="utf-8")):
        kind, text, name = block["kind"], block["text"], block["file"]
        if name:
            results.append(run_file(text, name))
        elif kind == "console":
            results.append(run_console(text, bert))
        elif kind == "sh":
            results.append(run_sh(text))
    passed, failed, skipped = (results.count(x) for x in (True, False, None))
    print(f"{passed} passed, {failed} failed" + (f", {skipped} skipped" if skipped else ""))
    sys.exit(failed > 0 or passed == 0)


if __name__ == "__main__":
    main()
