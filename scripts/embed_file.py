#!/usr/bin/env python3
"""A file as a C array: embed_file.py OUTPUT.c HEADER NAME FILE. HEADER declares NAME[] and NAME_size."""
import pathlib
import sys

from embed_page import array


def main():
    output, header, name, source = sys.argv[1:]
    text = pathlib.Path(source).read_text(encoding="utf-8")
    pathlib.Path(output).write_text(f'#include "{header}"\n\n' + array(name, text), encoding="utf-8")


if __name__ == "__main__":
    main()
