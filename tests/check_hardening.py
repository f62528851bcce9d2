#!/usr/bin/env python3
"""What was built is hardened: check_hardening.py FORTIFIED FILE…

Of each ELF file: position independent, nothing both writable and executable, no executable stack, relocations read-only
before the program starts, no relocations in code. Of those that the compiler made (not of the sanitizers' runtime): stack
protector, and with FORTIFIED 1 checked calls of the C library; on x86 functions begin with a landing pad.
"""
import pathlib
import re
import subprocess
import sys


def readelf(path, *options):
    return subprocess.run(["readelf", "-W", *options, path], check=True, capture_output=True, text=True).stdout


def landing_pads(path):
    """How many functions of .text could be jumped to, on x86 with control-flow protection."""
    listing = readelf(path, "-S")
    text = re.search(r"\] \.text +PROGBITS +\w+ (\w+) (\w+)", listing)
    offset, size = (int(x, 16) for x in text.groups())
    return pathlib.Path(path).read_bytes()[offset:offset + size].count(b"\xf3\x0f\x1e\xfa")


def faults(path, fortified):
    header, segments, dynamic, symbols = (readelf(path, o) for o in ("-h", "-l", "-d", "-s"))
    stack = re.search(r"GNU_STACK +\S+ \S+ \S+ \S+ \S+ (.{3})", segments)
    checks = {
        "not position independent": "DYN" in header,
        "an executable stack": stack and "E" not in stack.group(1),
        "a segment that is writable and executable": not re.search(r"LOAD .* RWE ", segments),
        "relocations stay writable": "GNU_RELRO" in segments and re.search(r"BIND_NOW|\(FLAGS_1\).*NOW", dynamic),
        "relocations in code": "TEXTREL" not in dynamic,
        "no stack protector": "__stack_chk_fail" in symbols,
        "no checked calls of the C library": not fortified or re.search(r"__\w+_chk@", symbols),
    }
    if "X86-64" in header:
        checks["no landing pads"] = landing_pads(path) > 10
    return [what for what, fine in checks.items() if not fine]


def main():
    fortified, files = sys.argv[1] == "1", sys.argv[2:]
    failed = 0
    for path in files:
        found = faults(path, fortified)
        failed += bool(found)
        print(f"{path}: {', '.join(found) or 'hardened'}")
    print(f"{len(files) - failed} passed, {failed} failed")
    sys.exit(failed > 0)


if __name__ == "__main__":
    main()
