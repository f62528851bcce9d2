#!/usr/bin/env python3
"""Includes point one way: base < {file, kernels} < {text, model, attention} < encoder < task < study < tools.

A room may include itself, rooms below it and public headers; rooms of one rank do not see each other; tools/ and
examples/ see the public headers only, which proves that the public API is enough. Public headers include only
public headers and the C library.
"""
import pathlib
import re
import sys

ROOT = pathlib.Path(__file__).resolve().parent.parent
RANK = {"base": 0, "file": 1, "kernels": 1, "text": 2, "model": 2, "attention": 2, "encoder": 3, "task": 4, "study": 5}
INCLUDE = re.compile(r'^\s*#\s*include\s*([<"])([^>"]+)[>"]', re.M)


def includes(path):
    for found in INCLUDE.finditer(path.read_text(encoding="utf-8")):
        yield found.group(1) == '"', found.group(2)


def library_faults(path):
    """Faults of a file in src/ROOM/."""
    room = path.relative_to(ROOT / "src").parts[0]
    if room not in RANK:
        yield f"a room called {room} is not known to tests/check_includes.py"
        return
    for quoted, name in includes(path):
        other = name.split("/")[0]
        if quoted and not (path.parent / name).exists() and other not in RANK:
            yield f'"{name}" is neither beside it nor in a room of src/'
        elif other in RANK and other != room and "/" in name and RANK[other] >= RANK[room]:
            yield f'"{name}": {room} may not see {other}'


def outside_faults(path):
    """Faults of a file in tools/ or examples/: it may include its own files, public headers and packages."""
    for quoted, name in includes(path):
        if quoted and not any((folder / name).exists() for folder in (path.parent, ROOT / "tools")):
            yield f'"{name}" is not one of its own files'
        if (ROOT / "src" / name).exists() and not (ROOT / "tools" / name).exists() and "/" in name:
            yield f'"{name}" is private to the library'


def public_faults(path):
    for quoted, name in includes(path):
        if quoted or not (name.startswith("bert/") or name in ("stddef.h", "stdint.h")):
            yield f"{name} is neither a public header nor <stddef.h> or <stdint.h>"


def main():
    kinds = (("src", library_faults), ("tools", outside_faults), ("examples", outside_faults),
             ("include", public_faults))
    failed = 0
    for folder, faults in kinds:
        bad = [f"{path.relative_to(ROOT)}: {fault}" for path in sorted((ROOT / folder).rglob("*.[ch]"))
               for fault in faults(path)]
        print(*bad, sep="\n", end="\n" if bad else "")
        failed += bool(bad)
    print(f"{len(kinds) - failed} passed, {failed} failed")
    sys.exit(failed > 0)


if __name__ == "__main__":
    main()
