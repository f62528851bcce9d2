#!/usr/bin/env python3
"""bindings/python/libbert/_c.py says what the headers say: check_binding.py CC…

A C program of static assertions: size of each structure, place and size of each field, the numbers of each enum, and that
the functions are declared, with so many arguments. Structures that say their size may end before the header's.
"""
import ctypes
import pathlib
import re
import subprocess
import sys

ROOT = pathlib.Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT / "bindings/python/libbert"))
sys.dont_write_bytecode = True
import _c  # noqa: E402


def structures():
    for name, kind in _c.STRUCTURES.items():
        grows = kind._fields_[0][0] == "size"
        yield f"sizeof({name}) {'>=' if grows else '=='} {ctypes.sizeof(kind)}", name
        for field, *_ in kind._fields_:
            place = getattr(kind, field)
            yield f"offsetof({name}, {field}) == {place.offset}", f"{name}.{field}"
            yield f"sizeof((({name} *)0)->{field}) == {place.size}", f"{name}.{field}"


def numbers():
    for prefix, kind in _c.ENUMS.items():
        for member in kind:
            yield f"(int){prefix}{member.name} == {member.value}", prefix + member.name


def declarations():
    """{function: number of arguments}"""
    found = {}
    for header in (ROOT / "include/bert").glob("*.h"):
        text = re.sub(r"/\*.*?\*/", "", header.read_text(encoding="utf-8"), flags=re.S)
        for name, arguments in re.findall(r"BERT_API\b[^;(]*?\b(bert_\w+)\s*\(([^;]*)\);", text):
            found[name] = 0 if arguments.strip() == "void" else arguments.count(",") + 1
    return found


def main():
    asserted = [*structures(), *numbers()]
    program = "#include <bert/bert.h>\n" + "".join(f'_Static_assert({what}, "{name}");\n' for what, name in asserted)
    done = subprocess.run([*sys.argv[1:], "-std=c17", f"-I{ROOT / 'include'}", "-fsyntax-only", "-x", "c", "-"],
                          input=program, text=True, capture_output=True)
    declared = declarations()
    wrong = [name for name, (_, *arguments) in _c.FUNCTIONS.items() if declared.get(name) != len(arguments)]
    print(done.stderr, *[f"not so in the headers: {name}" for name in wrong], sep="\n")
    failed = bool(done.returncode) + len(wrong)
    print(f"{len(asserted) + len(_c.FUNCTIONS) - failed} passed, {failed} failed")
    sys.exit(failed > 0)


if __name__ == "__main__":
    main()
