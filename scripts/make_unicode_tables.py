#!/usr/bin/env python3
"""Makes src/text/unicode_tables.c from src/text/unicode_props.txt and unicode_classes.txt.

    make_unicode_tables.py           writes the file
    make_unicode_tables.py --check   fails if the file is not what would be written

Two stages: block[c >> 7] is the number of a block of 128 entries, each the number of a record. A record says what
HF's normalizers and pre-tokenizers do with the character; equal records are stored once.
"""
import pathlib
import sys

TEXT = pathlib.Path(__file__).resolve().parent.parent / "src" / "text"
SHIFT = 7
FLAGS = {name: 1 << i for i, name in enumerate("CWMPKHOANXDR")}  # the order of enum bert_char_flag


def parse(name):
    for line in (TEXT / name).read_text(encoding="ascii").splitlines():
        line = line.split("#")[0].strip()
        if line:
            first, _, rest = line.partition(";")
            low, _, high = first.partition("..")
            for c in range(int(low, 16), int(high or low, 16) + 1):
                yield c, rest.split(";")


def code_points(field):
    return [int(x, 16) for x in field.split()]


def load():
    """-> flags, ccc, nfd, lower: dictionaries by code point, without the default values"""
    flags, ccc, nfd, lower = {}, {}, {}, {}
    for c, (names, combining, decomposition, low) in parse("unicode_props.txt"):
        flags[c] = sum(FLAGS[n] for n in names)
        if combining.strip():
            ccc[c] = int(combining)
        if decomposition.strip():
            nfd[c] = code_points(decomposition)
        if low.strip():
            lower[c] = code_points(low)
    for c, (names,) in parse("unicode_classes.txt"):
        flags[c] = flags.get(c, 0) | sum(FLAGS[n] for n in names)
    # O: its decomposition holds a character that has a combining class and is not deleted, so that order shows.
    for c in set(ccc) | set(nfd):
        if any(ccc.get(d) and not flags.get(d, 0) & FLAGS["M"] for d in nfd.get(c, [c])):
            flags[c] = flags.get(c, 0) | FLAGS["O"]
    return flags, ccc, nfd, lower


def make_records():
    """-> records (list of C initialisers), pool of code points, record number of every code point"""
    flags, ccc, nfd, lower = load()
    more = {c: low for c, low in lower.items() if len(low) > 1}
    assert more == {0x130: [0x69, 0x307]}, "bert_char_lower() knows one mapping to two characters"
    pool, place, records, number = [], {}, {}, []
    for c in range(0x110000):
        d = tuple(nfd.get(c, ()))
        if d and d not in place:
            place[d] = len(pool)
            pool += d
        record = (flags.get(c, 0), ccc.get(c, 0), len(d), place[d] if d else 0, lower.get(c, [c])[0] - c)
        number.append(records.setdefault(record, len(records)))
    return list(records), pool, number


def make_stages(number):
    blocks, first = {}, []
    for at in range(0, len(number), 1 << SHIFT):
        first.append(blocks.setdefault(tuple(number[at:at + (1 << SHIFT)]), len(blocks)))
    return first, [n for block in blocks for n in block]


def rows(values, form="{}"):
    line, out = "   ", []
    for v in values:
        item = " " + form.format(v) + ","
        if len(line) + len(item) > 118:
            out.append(line)
            line = "   "
        line += item
    return "\n".join(out + [line])


def make():
    records, pool, number = make_records()
    first, second = make_stages(number)
    assert len(records) < 65536 and len(pool) < 65536 and max(first) < 65536
    record_rows = "\n".join("    {%d, %d, %d, %d, %d}," % r for r in records)
    return f"""\
/* text/unicode_tables.c: made by scripts/make_unicode_tables.py from unicode_props.txt and unicode_classes.txt; do not
 * edit. Data derived from the Unicode Character Database (Unicode License v3, see NOTICE). */
#include "text/unicode.h"

/* flags, combining class, length and place of the decomposition, lowercase minus itself */
const bert_char bert_char_records[{len(records)}] = {{
{record_rows}
}};

const uint32_t bert_char_pool[{len(pool)}] = {{
{rows(pool, "0x{:X}")}
}};

const uint16_t bert_char_blocks[{len(first)}] = {{
{rows(first)}
}};

const uint16_t bert_char_entries[{len(second)}] = {{
{rows(second)}
}};
"""


def main():
    path, text = TEXT / "unicode_tables.c", make()
    if sys.argv[1:] == ["--check"]:
        if path.read_text(encoding="ascii") != text:
            sys.exit(f"{path} is not what {sys.argv[0]} makes: run it and commit the result")
    else:
        path.write_text(text, encoding="ascii")


if __name__ == "__main__":
    main()
