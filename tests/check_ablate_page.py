#!/usr/bin/env python3
"""The page of ablation in real headless Chromium: check_ablate_page.py BERT MODEL

The numbers shown are those of the JSON, controls do what they say, the console stays empty and nothing is asked of the
network. Needs chromium and chromedriver, so it runs by name (`scripts/check page`).
"""
import json
import subprocess
import sys

from browser import Browsing, main

BERT, MODEL = sys.argv[1:3]
TEXT = "the quick brown fox can do it"
SAID = ("received", "rollout", "norm")


def bert(*args):
    return subprocess.run([BERT, "ablate", "-m", MODEL, *args], check=True, capture_output=True).stdout


def short(x):
    """As the page shows a number: two digits."""
    return "–" if x is None else float(f"{x:.1e}")


class Ablation(Browsing):
    def show(self, state, *args):
        self.open_page(bert("--format", "html", *args), state)
        self.found = json.loads(bert("--format", "json", *args))

    def grid(self):
        rows = self.browser.run("return [...document.querySelectorAll('#head-map tbody tr')].map((r) =>"
                                "[...r.querySelectorAll('td')].map((c) => c.innerText))")
        return [[float(x) for x in row] for row in rows]

    def bars(self):
        """Label, numbers and bars' widths in % of each row."""
        return self.browser.run("return [...document.querySelectorAll('#token-bars tbody tr')].map((r) => [r.querySelector('th').innerText,"
                                "[...r.querySelectorAll('span')].map((c) => Number(c.innerText)),"
                                "[...r.querySelectorAll('i')].map((c) => parseFloat(c.style.width))])")

    def focus(self, css):
        self.browser.run("document.querySelector(arguments[0]).focus()", css)

    def test_numbers_are_those_of_the_json(self):
        self.show("effects", TEXT)
        self.assertEqual(self.grid(), [[short(x) for x in row] for row in self.found["head_effects"]])
        effects = self.found["token_effects"]
        columns = [[e["masked"]["embedding"], e["removed"]["embedding"], *(e["attention"][name] for name in SAID)] for e in effects]
        most = [max(column) for column in zip(*columns)]
        for (label, numbers, widths), effect, wanted in zip(self.bars(), effects, columns, strict=True):
            self.assertEqual(label, self.found["tokens"][effect["index"]])
            self.assertEqual(numbers, [short(x) for x in wanted])
            for width, x, largest in zip(widths, wanted, most, strict=True):
                self.assertAlmostEqual(width, 70 * x / largest, delta=0.01)
        for how in ("masked", "removed"):
            for name in SAID:
                shown = self.browser.run("return document.querySelector(arguments[0]).title", f'[data-rank="{how} {name}"]')
                self.assertEqual(float(shown), self.found["rank_correlation"][how][name])
        rows = self.caught("#copy-heads")
        self.assertEqual(rows[0], ["layer", "head", "embedding"])
        self.assertEqual([[int(l), int(a), float(x)] for l, a, x in rows[1:]],
                         [[l, a, x] for l, row in enumerate(self.found["head_effects"]) for a, x in enumerate(row)])
        rows = self.caught("#copy-tokens")
        self.assertEqual([list(map(float, row[2:])) for row in rows[1:]], columns)

    def test_darker_is_more(self):
        self.show("effects,theme=light", TEXT)
        inks = self.browser.run("return [...document.querySelectorAll('#head-map td')].map((c) =>"
                                "[Number(c.innerText), c.style.background.match(/\\d+/g).reduce((s, x) => s + +x, 0)])")
        order = [ink for _, ink in sorted(inks, key=lambda x: -x[0])]
        self.assertEqual(order, sorted(order))
        self.assertLess(order[0], 200)

    def test_log_probabilities(self):
        self.show("effects", TEXT)
        self.browser.choose("#of", "log_prob")
        self.assertEqual(self.state(), "effects,of=log_prob")
        self.assertEqual(self.grid(), [[short(x) for x in row] for row in self.found["head_log_probs"]])
        self.assertEqual([row[1][0] for row in self.bars()], [short(e["masked"]["log_prob"]) for e in self.found["token_effects"]])
        low, high = (float(self.browser.text(css)) for css in ("#low", "#high"))
        self.assertEqual(low, -high)

    def test_effects_on_one_token(self):
        self.show("effects", TEXT)
        self.browser.click('[data-token="3"] th')
        self.assertEqual(self.state(), "effects,of=vector,vector=3")
        self.assertEqual(self.grid(), [[short(head[3]) for head in layer] for layer in self.found["head_token_effects"]])
        wanted = [[short(e["masked"]["tokens"][3]), short(e["removed"]["tokens"][3])] for e in self.found["token_effects"]]
        wanted = [["–" if x is None else x for x in row] for row in wanted]
        shown = self.browser.run("return [...document.querySelectorAll('#token-bars tbody tr')].map((r) =>"
                                 "[...r.querySelectorAll('span')].slice(0, 2).map((c) => c.innerText))")
        self.assertEqual([["–" if x == "–" else float(x) for x in row] for row in shown], wanted)
        self.assertIn(["–"], [row[1:] for row in shown])  # a token that was removed has no vector
        self.browser.choose("#vector", "0")
        self.assertEqual(self.state(), "effects,of=vector,vector=0")
        self.browser.press("Escape")
        self.assertEqual(self.state(), "effects")

    def test_order_of_tokens(self):
        self.show("effects", TEXT)
        for k, name in enumerate(("masked", "removed", *SAID)):
            self.browser.choose("#sort", name)
            numbers = [row[1][k] for row in self.bars()]
            self.assertEqual(numbers, sorted(numbers, reverse=True), name)
        self.assertEqual(self.state(), "effects,sort=norm")

    def test_keyboard_and_readout(self):
        self.show("effects", TEXT)
        self.focus("#head-map [tabindex='0']")
        self.browser.press("ArrowDown", "ArrowRight", "ArrowRight", "ArrowLeft")
        said = self.browser.text("#readout")
        self.assertIn("Layer 1, head 1", said)
        self.assertIn(f"sentence vector: {self.found['head_effects'][1][1]}", said)
        self.browser.press("ArrowUp", "ArrowUp", "ArrowLeft", "ArrowLeft")
        self.assertIn("Layer 0, head 0", self.browser.text("#readout"))
        self.assertEqual(self.browser.run("return [...document.querySelectorAll('#head-map [tabindex=\"0\"]')].length"), 1)
        self.focus("#token-bars [tabindex='0']")
        self.browser.press("ArrowDown")
        self.assertIn(f"removed, sentence vector: {self.found['token_effects'][1]['removed']['embedding']}", self.browser.text("#readout"))
        self.browser.press("Enter")
        self.assertEqual(self.state(), "effects,of=vector,vector=2")
        self.assertEqual(self.browser.run("return document.activeElement.closest('tr').dataset.token"), "2")
        self.browser.press("Enter")
        self.assertEqual(self.state(), "effects")
        self.browser.point('[data-layer="2"][data-head="3"]', 5, 5)
        self.assertIn("Layer 2, head 3", self.browser.text("#readout"))

    def test_silence_and_themes(self):
        self.show("effects,theme=dark", "--silence", "uniform", TEXT)
        self.assertIn("looks at all tokens alike", self.browser.text("#heads-caption"))
        self.assertEqual(self.grid(), [[short(x) for x in row] for row in self.found["head_effects"]])
        ground = "return getComputedStyle(document.body).backgroundColor.match(/\\d+/g).map(Number)"
        self.assertLess(max(self.browser.run(ground)), 60)
        self.browser.run("window.dispatchEvent(new Event('beforeprint'))")
        self.assertGreater(min(self.browser.run(ground)), 200)  # paper is white
        self.browser.run("window.dispatchEvent(new Event('afterprint'))")
        self.browser.choose("#theme", "light")
        self.assertEqual(self.state(), "effects,theme=light")

    def test_hostile_text_and_address(self):
        hostile = "</script><script>document.title = 'broken out'</script><b>x <!-- \u202e"
        self.show("nonsense,of=constructor,vector=99,sort=__proto__", "--pair", hostile, hostile)
        self.assertEqual(self.browser.run("return document.querySelectorAll('#sentence b, #sentence script, script:not([id])').length"), 1)
        self.assertIn("</script><script>", self.browser.text("#sentence"))
        self.assertEqual(self.grid(), [[short(x) for x in row] for row in self.found["head_effects"]])
        self.show("effects", "")
        self.assertIn("no token", self.browser.text("#tokens-caption"))


if __name__ == "__main__":
    main(*sys.argv[3:])
