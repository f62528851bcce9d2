#!/usr/bin/env python3
"""What libbert.so shows and takes: check_symbols.py LIBBERT_SO

Exported is exactly what include/bert marks BERT_API. Of libm it imports fma and square root only, which IEEE 754
rounds correctly: nothing else is the same on every machine. It imports nothing that prints, ends the program, or
reads the environment or locale, and it has no writable variables.
"""
import pathlib
import re
import subprocess
import sys

ROOT = pathlib.Path(__file__).resolve().parent.parent
LIBM = {"fmaf", "sqrtf", "sqrt", "fabsf"}
PRINTS_OR_EXITS = {
    "printf", "puts", "putchar", "putc", "fputs", "fputc", "fprintf", "vprintf", "vfprintf", "dprintf", "perror",
    "stdout", "stderr", "stdin", "exit", "_exit", "_Exit", "quick_exit", "abort", "getenv", "secure_getenv", "environ",
    "setlocale", "syslog", "system", "signal", "sigaction",
}


def nm(library, *options):
    """{(name, type letter)} of the dynamic symbols, without their versions."""
    text = subprocess.run(["nm", "-D", *options, library], check=True, capture_output=True, text=True).stdout
    rows = (line.split() for line in text.splitlines())
    return {(row[-1].split("@")[0], row[-2]) for row in rows}


def names(library, *options):
    return {name for name, kind in nm(library, *options) if kind != "A"}


def declared():
    """Functions that the public headers mark BERT_API."""
    found = set()
    for header in (ROOT / "include/bert").glob("*.h"):
        text = re.sub(r"/\*.*?\*/", "", header.read_text(encoding="utf-8"), flags=re.S)
        text = re.sub(r"^\s*#.*$", "", text, flags=re.M)
        for declaration in re.findall(r"BERT_API\b([^;]*);", text):
            found.add(re.search(r"\b(bert_\w+)\s*\(", declaration).group(1))
    return found


def system_library(name):
    path = subprocess.run(["gcc", f"-print-file-name={name}"], check=True, capture_output=True, text=True).stdout
    return path.strip()


def writable(library):
    """Variables in .data or .bss: state that every user of the library in a process would share."""
    text = subprocess.run(["objdump", "-t", library], check=True, capture_output=True, text=True).stdout
    rows = re.findall(r"^\w+ ....... ?(\.data|\.bss|\.tdata|\.tbss)\s+(\w+)\s+(.*)$", text, flags=re.M)
    # The last two are what its constructor found out about the processor (__builtin_cpu_supports).
    compiler = ("__dso_handle", "__TMC_END__", "completed.0", "__cpu_model", "__cpu_features2")
    return {name for _, size, name in rows if int(size, 16) and name.split()[-1] not in compiler}


def main():
    library = sys.argv[1]
    exported, wanted, taken = names(library, "--defined-only"), declared(), names(library, "--undefined-only")
    plain = {re.sub(r"^__(\w+)_chk$", r"\1", name) for name in taken}
    libm = names(system_library("libm.so.6"), "--defined-only") - names(system_library("libc.so.6"), "--defined-only")
    checks = {
        "exported but not marked BERT_API in include/bert": exported - wanted,
        "marked BERT_API but not exported": wanted - exported,
        f"imported from libm (only {', '.join(sorted(LIBM))} may be)": (taken & libm) - LIBM,
        "imported though the library never prints, exits or reads the environment": plain & PRINTS_OR_EXITS,
        "writable variables": writable(library),
    }
    for what, found in checks.items():
        if found:
            print(f"{library}: {what}: {', '.join(sorted(found))}")
    failed = sum(map(bool, checks.values()))
    print(f"{len(exported)} symbols exported")
    print(f"{len(checks) - failed} passed, {failed} failed")
    sys.exit(failed > 0)


if __name__ == "__main__":
    main()
