#!/usr/bin/env python3
"""Draws docs/scaling.svg: libbert's time against the number of texts and against length.

    scripts/plot_bench.py [RESULTS [SVG]]      default build/bench-results/linear.json docs/scaling.svg

RESULTS is what `scripts/bench_peers --linear` writes. Dots are measured. Lines are models of cost: on the left a
constant time a text, on the right a + b·T + c·T², fitted to the dots by least squares of the relative error.
"""
import json
import math
import pathlib
import sys
from xml.sax.saxutils import escape

PANEL, GAP, LEFT, TOP, HEIGHT = 380, 90, 70, 50, 260
STYLE = """text { font: 13px sans-serif; fill: #444 } .title { font-size: 15px; fill: #111 }
.axis { stroke: #888 } .grid { stroke: #ddd } .model { stroke: #e08214; stroke-width: 2; fill: none }
.dot { fill: #2166ac } svg { background: white }"""


def solve(a, b):
    """x of a·x = b, by Gauss's elimination with the largest pivot."""
    rows, n = [list(row) + [y] for row, y in zip(a, b)], len(b)
    for i in range(n):
        pivot = max(range(i, n), key=lambda k: abs(rows[k][i]))
        rows[i], rows[pivot] = rows[pivot], rows[i]
        for k in range(n):
            if k != i:
                factor = rows[k][i] / rows[i][i]
                rows[k] = [x - factor * y for x, y in zip(rows[k], rows[i])]
    return [row[n] / row[i] for i, row in enumerate(rows)]


def fit(xs, ys, powers):
    """Coefficients c of Σ c·x^p that make Σ (model/y - 1)² least."""
    columns = [[x ** p / y for x, y in zip(xs, ys)] for p in powers]
    normal = [[sum(u * v for u, v in zip(a, b)) for b in columns] for a in columns]
    return solve(normal, [sum(column) for column in columns])


def nice_step(largest, ticks=5):
    unit = 10 ** math.floor(math.log10(largest / ticks))
    return next(unit * k for k in (1, 2, 5, 10) if unit * k * ticks >= largest)


class Panel:
    """A diagram with both axes from 0."""

    def __init__(self, left, xs, ys):
        self.left, self.xs, self.ys = left, xs, ys
        self.steps = nice_step(max(xs)), nice_step(max(ys))
        self.ends = [math.ceil(max(v) / step - 1e-9) * step for v, step in zip((xs, ys), self.steps)]

    def at(self, x, y):
        return self.left + PANEL * x / self.ends[0], TOP + HEIGHT * (1 - y / self.ends[1])

    def axes(self, title, x_name, y_name):
        bottom, middle = TOP + HEIGHT, self.left + PANEL / 2
        for i in range(round(self.ends[0] / self.steps[0]) + 1):
            x, _ = self.at(i * self.steps[0], 0)
            yield f'<text x="{x:.1f}" y="{bottom + 18}" text-anchor="middle">{i * self.steps[0]:g}</text>'
        for i in range(round(self.ends[1] / self.steps[1]) + 1):
            _, y = self.at(0, i * self.steps[1])
            kind = "grid" if i else "axis"
            yield f'<line class="{kind}" x1="{self.left}" x2="{self.left + PANEL}" y1="{y:.1f}" y2="{y:.1f}"/>'
            yield f'<text x="{self.left - 8}" y="{y + 4:.1f}" text-anchor="end">{i * self.steps[1]:g}</text>'
        yield f'<text class="title" x="{middle}" y="{TOP - 24}" text-anchor="middle">{escape(title)}</text>'
        yield f'<text x="{middle}" y="{bottom + 40}" text-anchor="middle">{escape(x_name)}</text>'
        yield f'<text x="{self.left - 48}" y="{TOP - 14}">{escape(y_name)}</text>'

    def draw(self, powers):
        coefficients = fit(self.xs, self.ys, powers)
        curve = []
        for i in range(101):
            x = max(self.xs) * i / 100
            y = sum(c * x ** p for c, p in zip(coefficients, powers))
            curve.append("{:.1f},{:.1f}".format(*self.at(x, max(y, 0))))
        yield f'<polyline class="model" points="{" ".join(curve)}"/>'
        for x, y in zip(self.xs, self.ys):
            yield '<circle class="dot" cx="{:.1f}" cy="{:.1f}" r="4"/>'.format(*self.at(x, y))


def svg(result):
    machine = result["machine"]
    first = Panel(LEFT, result["counts"], result["count_seconds"])
    second = Panel(LEFT + PANEL + GAP, result["lengths"], [1e3 * s for s in result["length_seconds"]])
    width, height = LEFT + 2 * PANEL + GAP + 30, TOP + HEIGHT + 80
    yield f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {height}">'
    yield f"<style>{STYLE}</style>"
    yield from first.axes("Time against the number of texts", f"texts of {result['text_tokens']} tokens", "seconds")
    yield from first.draw([1])
    yield from second.axes("Time against length", "tokens T of one text", "ms")
    yield from second.draw([0, 1, 2])
    note = (f"{result['model']}, 1 thread, {machine['cpu']}, {machine['date']}; "
            "dots: medians; lines: c·n, a + b·T + c·T²")
    yield f'<text x="{LEFT}" y="{height - 12}">{escape(note)}</text>'
    yield "</svg>"


def main():
    results, target = (sys.argv[1:] + ["build/bench-results/linear.json", "docs/scaling.svg"][len(sys.argv) - 1:])[:2]
    text = "\n".join(svg(json.loads(pathlib.Path(results).read_text()))) + "\n"
    pathlib.Path(target).write_text(text, encoding="utf-8")


if __name__ == "__main__":
    main()
