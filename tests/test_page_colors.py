#!/usr/bin/env python3
"""The colours of the pages stay apart for every kind of colour vision: test_page_colors.py [COLORS_JS]

Colour vision deficiencies as G. M. Machado, M. M. Oliveira and L. A. F. Fernandes simulate them (2009, "A physiologically-
based model for simulation of color vision deficiency", severity 1: the matrices act on linear RGB); distances are CIE 1976
ΔE in CIELAB under D65, where 2.3 is just noticeable.
"""
import itertools
import math
import pathlib
import re
import sys
import unittest

ROOT = pathlib.Path(__file__).resolve().parent.parent
SOURCE = pathlib.Path(sys.argv.pop(1) if len(sys.argv) > 1 else ROOT / "tools/page/colors.js").read_text(encoding="utf-8")
VISIONS = {
    "usual": ((1, 0, 0), (0, 1, 0), (0, 0, 1)),
    "protanopia": ((0.152286, 1.052583, -0.204868), (0.114503, 0.786281, 0.099216), (-0.003882, -0.048116, 1.051998)),
    "deuteranopia": ((0.367322, 0.860646, -0.227968), (0.280085, 0.672501, 0.047413), (-0.011820, 0.042940, 0.968881)),
    "tritanopia": ((1.255528, -0.076749, -0.178779), (-0.078411, 0.930809, 0.147602), (0.004733, 0.691367, 0.303900)),
}
PAPERS = ("#ffffff", "#171b21")  # light, dark


def linear(color):
    """#rrggbb as linear RGB (IEC 61966-2-1)."""
    values = (int(color[i:i + 2], 16) / 255 for i in (1, 3, 5))
    return [v / 12.92 if v <= 0.04045 else ((v + 0.055) / 1.055) ** 2.4 for v in values]


def times(matrix, vector):
    return [sum(m * v for m, v in zip(row, vector)) for row in matrix]


def lab(color, vision):
    """CIELAB of what somebody with this vision sees."""
    seen = [min(1, max(0, v)) for v in times(VISIONS[vision], linear(color))]
    xyz = times(((0.4124564, 0.3575761, 0.1804375), (0.2126729, 0.7151522, 0.0721750), (0.0193339, 0.1191920, 0.9503041)), seen)
    x, y, z = (v ** (1 / 3) if v > 216 / 24389 else (24389 / 27 * v + 16) / 116 for v in (xyz[0] / 0.95047, xyz[1], xyz[2] / 1.08883))
    return 116 * y - 16, 500 * (x - y), 200 * (y - z)


def apart(a, b, vision):
    return math.dist(lab(a, vision), lab(b, vision))


def contrast(a, b):
    """As WCAG 2 defines it."""
    low, high = sorted(sum(w * v for w, v in zip((0.2126, 0.7152, 0.0722), linear(color))) for color in (a, b))
    return (high + 0.05) / (low + 0.05)


def hexes(pattern):
    return re.findall("#[0-9a-fA-F]{6}", re.search(pattern, SOURCE, re.S)[1])


def signed():
    """(zero, minus, plus) of each theme."""
    for row in re.findall(r"zero: \[(.*?)\], minus: \[(.*?)\], plus: \[(.*?)\]", SOURCE):
        yield ["#%02x%02x%02x" % tuple(map(int, part.split(","))) for part in row]


class Colors(unittest.TestCase):
    def test_heads(self):
        heads = hexes(r"HEAD_COLORS = \[(.*?)\]")
        self.assertEqual(len(heads), 12)
        for vision in VISIONS:
            least = min((apart(a, b, vision), a, b) for a, b in itertools.combinations(heads, 2))
            print(f"{vision}: the two nearest of 12 heads are {least[1]} and {least[2]}, ΔE {least[0]:.1f}")
            self.assertGreater(least[0], 20, (vision, least))
        for paper in PAPERS:
            faintest = min((contrast(color, paper), color) for color in heads)
            print(f"on {paper}: contrast at least {faintest[0]:.2f}")
            self.assertGreater(faintest[0], 2, faintest)

    def test_weights_grow_darker_or_lighter(self):
        """A ramp is read by its lightness, which every vision has."""
        for theme in ("light", "dark"):
            ramp = hexes(rf"{theme}: \[('#.*?)\]")
            for vision in VISIONS:
                lightness = [lab(color, vision)[0] for color in ramp]
                steps = [b - a if theme == "dark" else a - b for a, b in zip(lightness, lightness[1:])]
                self.assertGreater(min(steps), 6, (theme, vision, lightness))

    def test_less_and_more(self):
        self.assertEqual(len(list(signed())), 2)
        for zero, minus, plus in signed():
            for vision in VISIONS:
                self.assertGreater(apart(minus, plus, vision), 50, vision)
                self.assertGreater(min(apart(zero, minus, vision), apart(zero, plus, vision)), 40, vision)


if __name__ == "__main__":
    unittest.main()
