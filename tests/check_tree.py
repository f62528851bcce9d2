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
MAX_OTHER_LINE = 164  # tests, scripts, the page
MAX_FUNCTION = 80
MAX_TREE = 60e6
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


def layout(name, text):
    if pathlib.PurePath(name).suffix not in CODE or name.startswith(LONG_LINES_ALLOWED):
        return
    limit = MAX_LINE if name.endswith((".c", ".h")) and not name.startswith("tests/") else MAX_OTHER_LINE
    for number, line in enumerate(text.splitlines(), 1):
        if len(line) > limit:
            yield f"{number}: {len(line)} columns, {limit} are allowed"
        if line != line.rstrip():
            yield f"{number}: white space at the end"


def content(name, text):
    if name.startswith("tests/data/"):
        return
    for number, line in enumerate(text.splitlines(), 1):
        for rule, what in ((HOME_FOLDERS, "an absolute path"), (REGISTRIES, "a package registry's host"),
                           (SECRETS, "something like a secret")):
            if found := rule.search(line):
                yield f"{number}: {what}: {found.group(0)[:20]}"


def functions(name, text):
    """C functions longer than the house allows: from a line that begins a body to the `}` in the first column."""
    if not name.endswith(".c") or name.startswith("tests/"):
        return
    start = None
    for number, line in enumerate(text.splitlines(), 1):
        if re.match(r"(\{|[A-Za-z_].*\)[^;]*\{)\s*$", line):
            start = start or number
        elif line.startswith("}"):
            if start and number - start > MAX_FUNCTION:
                yield f"{start}: a function of {number - start} lines, {MAX_FUNCTION} are allowed"
            start = None


def text_files(paths):
    for path in paths:
        try:
            yield str(path.relative_to(ROOT)), path.read_text(encoding="utf-8")
        except (UnicodeDecodeError, FileNotFoundError):
            pass


def main():
    paths = committed()
    files = list(text_files(paths))
    failed = 0
    for rule in (layout, content, functions):
        faults = [f"{name}:{fault}" for name, text in files for fault in rule(name, text)]
        print(*faults, sep="\n", end="\n" if faults else "")
        failed += bool(faults)
    size = sum(path.stat().st_size for path in paths if path.exists())
    if size > MAX_TREE:
        print(f"the tree has {size / 1e6:.0f} MB, {MAX_TREE / 1e6:.0f} are allowed")
        failed += 1
    print(f"{len(paths)} files, {size / 1e6:.1f} MB")
    print(f"{4 - failed} passed, {failed} failed")
    sys.exit(failed > 0)


if __name__ == "__main__":
    main()
