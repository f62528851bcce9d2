#!/usr/bin/env python3
"""Asks the tokenizers library (0.23.3) for the character classes that src/text/unicode_props.txt does not have.

For every Unicode scalar value: A is a word character (\\w of its regular expressions: single_word, Whitespace),
N is numeric (Digits), X is removed by
StripAccents, D and R are \\d and \\w of the regular expressions of Split and Replace (Oniguruma). Writes src/text/unicode_classes.txt; needs `tokenizers`.
"""
import pathlib

from tokenizers import Regex, normalizers, pre_tokenizers

SCALARS = [c for c in range(0x110000) if not 0xD800 <= c <= 0xDFFF]
HEADER = """\
# Character classes as HF tokenizers 0.23.3 has them, measured by scripts/probe_char_classes.py on every scalar value.
# first[..last];classes    A: word character (\\w)  N: numeric  X: removed by the StripAccents normalizer
#                         D, R: \\d and \\w of regular expressions in Split and Replace
"""


def matched(expression):
    left = normalizers.Replace(Regex(expression), "").normalize_str("".join(map(chr, SCALARS)))
    return set(SCALARS) - set(map(ord, left))


def classes():
    digit, word = matched(r"\d"), matched(r"\w")
    digits = pre_tokenizers.Digits(individual_digits=True)
    words = pre_tokenizers.Whitespace()
    strip = normalizers.StripAccents()
    for c in SCALARS:
        after_x = "x" + chr(c)
        found = ""
        if words.pre_tokenize_str(after_x)[0][0] == after_x:
            found += "A"
        if len(digits.pre_tokenize_str(after_x)) == 2:
            found += "N"
        if strip.normalize_str(after_x) == "x":
            found += "X"
        if c in digit:
            found += "D"
        if c in word:
            found += "R"
        yield c, found


def main():
    ranges = []
    for c, found in classes():
        if ranges and ranges[-1][1] == c - 1 and ranges[-1][2] == found:
            ranges[-1][1] = c
        else:
            ranges.append([c, c, found])
    lines = [f"{a:04X};{f}" if a == b else f"{a:04X}..{b:04X};{f}" for a, b, f in ranges if f]
    out = pathlib.Path(__file__).parent.parent / "src/text/unicode_classes.txt"
    out.write_text(HEADER + "\n".join(lines) + "\n")


if __name__ == "__main__":
    main()
