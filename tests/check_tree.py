#!/usr/bin/env python3
"""House rules that a program can check, over every committed text file."""
import pathlib
import re
import subprocess
import sys

ROOT = pathlib.Path(__file__).resolve().parent.parent
CODE = {".c", ".h", ".py", ".sh", ".js", ".css", ".build", ""}
LONG_LINES_ALLOWED = ("tests/data/", "src/text/unicode_tables.c", "LICENSE", "NOTICE")
MAX_LINE = 120
MAX_FUNCTION = 80
# Written in pieces, or this file would break its own rule.
HOME_FOLDERS = re.compile(r"/(?:work" r"/|home" r"/\w|root" r"/|Users" r"/\w)")
REGISTRIES = re.compile(r"pypi\.(?:org|python)|pythonhosted" r"\.org|maven\.(?:org|apache\.org/maven2)|npmjs" r"\.")
SECRETS = re.compile(r"\bhf_[A-Za-z0-9]{20,}|BEGIN (?:RSA |EC )?PRIVATE KEY|AKIA[0-9A-Z]{16}")


def committed():
    """Committed files, or every file where there is no repository (an unpacked archive)."""
    try:
        listed = subprocess.run(["git", "-C", ROOT, "ls-files", "-z"], check=True, capture_output=True).stdout
        return [ROOT / name.decode() for name in listed.split(b"\0") if name]
    except (OSError, subprocess.CalledProcessError):
        ignored = re.compile(r"(^|/)(build[^/]*|\.venv[^/]*|\.git|__pycache__|models)/")
        return [p for p in ROOT.rglob("*") if p.is_file() and not ignored.search(str(p.relative_to(ROOT)))]


def line_faults(name, text):
    code = pathlib.PurePath(name).suffix in CODE and not name.startswith(LONG_LINES_ALLOWED)
    for number, line in enumerate(text.splitlines(), 1):
        if code and len(line) > MAX_LINE:
            yield f"{number}: {len(line)} columns, {MAX_LINE} are allowed"
        if code and line != line.rstrip():
            yield f"{number}: white space at the end"
        for rule, what in ((HOME_FOLDERS, "an absolute path"), (REGISTRIES, "a package registry's host"),
                           (SECRETS, "something like a secret")):
            if found := rule.search(line):
                yield f"{number}: {what}: {found.group(0)[:20]}"


def function_faults(text):
    """C functions longer than the house allows: from a line that begins a body to the `}` in the first column."""
    start = None
    for number, line in enumerate(text.splitlines(), 1):
        if re.match(r"(\{|[A-Za-z_].*\)[^;]*\{)\s*$", line):
            start = start or number
        elif line.startswith("}"):
            if start and number - start > MAX_FUNCTION:
                yield f"{start}: a function of {number - start} lines, {MAX_FUNCTION} are allowed"
            start = None


def faults(path):
    name = str(path.relative_to(ROOT))
    try:
        text = path.read_text(encoding="utf-8")
    except (UnicodeDecodeError, FileNotFoundError):
        return
    if name.startswith("tests/data/"):
        return
    yield from line_faults(name, text)
    if path.suffix == ".c" and not name.startswith("tests/"):
        yield from function_faults(text)


def main():
    files = committed()
    bad = {path: found for path in files if (found := list(faults(path)))}
    for path, found in bad.items():
        for fault in found:
            print(f"{path.relative_to(ROOT)}:{fault}")
    size = sum(path.stat().st_size for path in files if path.exists())
    if size > 60e6:
        print(f"the tree has {size / 1e6:.0f} MB, 60 are allowed")
    failed = len(bad) + (size > 60e6)
    print(f"{len(files) + 1 - failed} passed, {failed} failed")
    sys.exit(failed > 0)


if __name__ == "__main__":
    main()
