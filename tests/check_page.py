#!/usr/bin/env python3
"""The pages of attention and of ablation in real headless Chromium: check_page.py BERT MODEL

The numbers shown are the numbers dumped, controls do what they say, the console stays empty and nothing is asked of the
network. Needs chromium and chromedriver, so it runs by name (`scripts/check page`).
"""
import base64
import json
import os
import pathlib
import subprocess
import sys
import tempfile
import time

from browser import Browsing, main
from check_ablate_page import Ablation  # noqa: F401  its tests are run with these
from check_front_page import FrontPage  # noqa: F401

BERT, MODEL = sys.argv[1:3]
FOX = "The quick brown fox jumps over the lazy dog."
PAIR = ("he can run", "what can he do?")
STEP = 1 / 255 + 0.0005  # 8 bits, and three decimals


def bert(*args, stdin=b""):
    return subprocess.run([BERT, "attention", "-m", MODEL, *args], input=stdin, check=True, capture_output=True).stdout


def dump(*args):
    return json.loads(bert("--format", "json", "--what", "weights,scores,query,key", *args))


class Attention(Browsing):
    def show(self, state, *args, stdin=b""):
        self.open_page(bert("--format", "html", *args, stdin=stdin), state)

    def read(self):
        return "\n".join(line for line in self.browser.text("#readout").splitlines() if line.strip())

    def table(self):
        script = "return [...document.querySelectorAll('#readout tr')].slice(1).map((r) => [...r.children].map((c) => c.innerText))"
        return self.browser.run(script)

    def canvas_focus(self):
        self.browser.run("document.querySelector('canvas').focus()")

    def copied(self):
        return self.caught("#copy")

    def close(self, found, wanted, delta=STEP):
        self.assertEqual(len(found), len(wanted))
        for row, want in zip(found, wanted):
            for x, y in zip(row, want, strict=True):
                self.assertAlmostEqual(float(x), y, delta=delta)


class Page(Attention):
    def test_map_shows_the_dump(self):
        self.show("map,layer=1,head=2", FOX)
        wanted = dump(FOX)
        weights, tokens = wanted["attentions"]["1"][2], wanted["tokens"]
        rows = self.copied()
        self.assertEqual(rows[0][1:], tokens)
        self.assertEqual([row[0] for row in rows[1:]], tokens)
        self.close([row[1:] for row in rows[1:]], weights)
        self.canvas_focus()
        self.browser.press("ArrowDown", "ArrowDown", "ArrowDown", "ArrowRight")
        title, number, *_ = self.read().splitlines()
        self.assertEqual(title, f"“{tokens[2]}” → “{tokens[1]}”")
        self.assertAlmostEqual(float(number), weights[2][1], delta=STEP)
        self.browser.press("Enter")
        self.assertEqual(self.state(), "map,layer=1,head=2,token=2.1")

    def test_map_under_the_pointer(self):
        self.show("map,layer=0,head=1", FOX)
        wanted = dump(FOX)
        pairs = {(f"“{a}” → “{b}”") for a in wanted["tokens"] for b in wanted["tokens"]}
        found = set()
        for x, y in ((400, 200), (420, 330), (500, 300), (600, 420)):
            self.browser.point("canvas", x, y)
            title, number, *_ = self.read().splitlines()
            self.assertIn(title, pairs)
            near = [w for a, row in zip(wanted["tokens"], wanted["attentions"]["0"][1]) for b, w in zip(wanted["tokens"], row)
                    if f"“{a}” → “{b}”" == title]
            self.assertLessEqual(min(abs(float(number) - w) for w in near), STEP)
            found.add(title)
        self.assertEqual(len(found), 4)

    def test_head_view(self):
        self.show("head,layer=2", FOX)
        wanted = dump(FOX)
        tokens = wanted["tokens"]
        self.canvas_focus()
        self.browser.press("ArrowDown", "ArrowDown")
        self.assertTrue(self.read().startswith(f"“{tokens[1]}” attends to"))
        means = [sum(head[1][j] for head in wanted["attentions"]["2"]) / 4 for j in range(len(tokens))]
        shown = self.table()
        self.close([[row[1] for row in shown]], [sorted(means, reverse=True)[:10]])
        self.assertAlmostEqual(float(shown[0][2]), max(head[1][tokens.index(shown[0][0])] for head in wanted["attentions"]["2"]), delta=STEP)
        self.browser.press("ArrowRight")
        self.assertIn("is attended to by", self.read())
        said = set()
        for y in (120, 170, 230):  # tokens under the pointer, on the left
            self.browser.point("canvas", 200, y)
            said.add(self.read().splitlines()[0])
            i = next(i for i, token in enumerate(tokens) if self.read().startswith(f"“{token}” attends to"))
            means = sorted((sum(head[i][j] for head in wanted["attentions"]["2"]) / 4 for j in range(len(tokens))), reverse=True)
            self.close([[row[1] for row in self.table()]], [means[:10]])
        self.assertEqual(len(said), 3)

    def test_heads_and_layers(self):
        self.show("head", FOX)
        pressed = "return [...document.querySelectorAll('.head')].map((h) => h.getAttribute('aria-pressed')).join()"
        self.assertEqual(self.browser.run(pressed), "true,true,true,true")
        self.browser.click(".head[aria-label='Head 2']")
        self.assertEqual((self.browser.run(pressed), self.state()), ("true,true,false,true", "head,heads=0.1.3"))
        self.browser.click(".head[aria-label='Head 1']", shift=True)
        self.assertEqual((self.browser.run(pressed), self.state()), ("false,true,false,false", "head,head=1,heads=1"))
        self.browser.click("#heads-none")
        self.assertEqual(self.browser.run(pressed), "false,false,false,false")
        self.browser.click("#heads-all")
        self.browser.click("#layer-after")
        self.assertEqual(self.state(), "head,layer=1,head=1")
        self.browser.press(".", ".", ".")
        self.assertEqual(self.state(), "head,layer=2,head=1")
        self.browser.press("4", "]", ",")
        self.assertEqual(self.state(), "map,layer=1,head=2")
        for measure in ("entropy", "distance"):
            self.browser.choose("#sort", measure)
            shown = [float(x) for x in self.browser.run("return [...document.querySelectorAll('.head small')].map((x) => x.innerText)")]
            self.assertEqual(shown, sorted(shown))

    def test_model_view(self):
        self.show("model", FOX)
        self.canvas_focus()
        self.browser.press("ArrowDown", "ArrowDown", "ArrowRight")
        self.assertTrue(self.read().startswith("Layer 1, head 1"))
        self.browser.point("canvas", 400, 120, click=True)
        self.assertRegex(self.state(), r"^model,open=\d\.\d$")
        layer, head = self.state()[-3::2]
        wanted = dump(FOX)["attentions"][layer][int(head)]
        self.close([row[1:] for row in self.copied()[1:]], wanted)
        self.canvas_focus()
        self.browser.press("ArrowDown", "Enter")
        self.assertIn("token=0", self.state())
        self.assertIn("attends to", self.read())
        self.browser.click("#back")
        self.assertEqual(self.state(), "model")
        self.assertEqual(len(self.copied()), 1 + 3 * 4)

    def test_neuron_view(self):
        self.show("neuron,layer=1,head=3,token=2", FOX)
        wanted = dump(FOX)
        q, k = wanted["query"]["1"][3][2], wanted["key"]["1"][3]
        self.canvas_focus()
        self.browser.press("ArrowDown", "ArrowUp")
        shown = self.table()
        order = sorted(range(len(k)), key=lambda j: -wanted["attentions"]["1"][3][2][j])[:10]
        self.close([[row[2] for row in shown]], [[wanted["attentions"]["1"][3][2][j] for j in order]])
        worst = max(abs(a) for a in q) * max(abs(b) for row in k for b in row) * len(q) / 127 / len(q) ** 0.5
        for row in shown:
            near = [wanted["scores"]["1"][3][2][j] for j, token in enumerate(wanted["tokens"]) if token == row[0]]
            self.assertLessEqual(min(abs(float(row[1]) - s) for s in near), worst + 0.005)

    def test_pair_and_hidden(self):
        self.show("map,layer=0,head=0", "--pair", PAIR[1], PAIR[0])
        wanted = dump("--pair", PAIR[1], PAIR[0])
        tokens, types, weights = wanted["tokens"], wanted["token_type_ids"], wanted["attentions"]["0"][0]
        a, b = ([i for i, t in enumerate(types) if t == which] for which in (0, 1))
        for name, left, right in (("ab", a, b), ("ba", b, a), ("aa", a, a), ("bb", b, b)):
            self.browser.choose("#filter", name)
            rows = self.copied()
            self.assertEqual((rows[0][1:], [r[0] for r in rows[1:]]), ([tokens[j] for j in right], [tokens[i] for i in left]))
            self.close([r[1:] for r in rows[1:]], [[weights[i][j] for j in right] for i in left])
        self.browser.choose("#filter", "all")
        self.assertEqual(self.browser.text("#notes"), "")
        self.browser.click("#hide-special")
        self.assertIn("Renormalised", self.browser.text("#notes"))
        stay = [i for i, token in enumerate(tokens) if token not in ("[CLS]", "[SEP]")]
        rows = self.copied()
        self.assertEqual(rows[0][1:], [tokens[i] for i in stay])
        for row, i in zip(rows[1:], stay, strict=True):
            left = sum(weights[i][j] for j in stay)
            self.close([row[1:]], [[weights[i][j] / left for j in stay]], 3 * STEP / left)
            self.assertAlmostEqual(sum(map(float, row[1:])), 1, delta=0.002)
        self.browser.click("#hide-punctuation")
        self.assertNotIn("?", self.copied()[0])

    def test_words(self):
        self.show("map,layer=2,head=0", FOX)
        wanted = dump(FOX)
        words = []
        for i, token in enumerate(wanted["tokens"]):
            words[-1].append(i) if token.startswith("##") else words.append([i])
        self.browser.click("#words")
        rows, weights = self.copied(), wanted["attentions"]["2"][0]
        self.assertEqual(len(rows) - 1, len(words))
        self.assertIn("Words", self.browser.text("#notes"))
        self.close([r[1:] for r in rows[1:]], [[sum(weights[i][j] for i in r for j in c) / len(r) for c in words] for r in words], 0.02)

    def test_several_texts(self):
        self.show("map", stdin=f"{FOX}\nhe can run\n".encode())
        self.browser.choose("#beside", "1")
        self.assertEqual(self.browser.run("return document.querySelectorAll('canvas').length"), 2)
        self.assertIn("he can run", self.browser.text("#sentence"))
        self.assertEqual(self.state(), "map,beside=1")
        self.browser.choose("#text", "1")
        self.assertEqual(self.copied()[0][2], "he")

    def test_saved_files(self):
        self.show("map", "a <b> & \"c\" \u0007")
        self.browser.run("window.saved = []; URL.createObjectURL = (blob) => { window.saved.push(blob); return 'data:,'; };"
                         "HTMLAnchorElement.prototype.click = function () {};")
        self.browser.click("#svg")
        self.browser.click("#png")
        time.sleep(0.3)
        script = ("const done = arguments[0]; Promise.all(window.saved.map((blob) => blob.arrayBuffer())).then((all) =>"
                  " done(all.map((b) => btoa(String.fromCharCode(...new Uint8Array(b).slice(0, 60000))))));")
        svg, png = map(base64.b64decode, self.browser.call("POST", "/execute/async", {"script": script, "args": []}))
        self.assertTrue(png.startswith(b"\x89PNG\r\n"))
        problem = self.browser.run("return new DOMParser().parseFromString(arguments[0], 'image/svg+xml').querySelector('parsererror')?.textContent", svg.decode())
        self.assertIsNone(problem)
        for view in "123":
            self.browser.press(view)
            self.browser.click("#svg")

    def test_opens_as_asked(self):
        self.show("", "--view", "neuron,layer=1,head=2", FOX)
        self.assertEqual(self.browser.text("[aria-selected='true']"), "Neuron view")
        self.assertEqual(self.browser.run("return document.querySelector('#layer').value"), "1")
        self.show("nonsense,layer=99,heads=x.y,token=7000.9,text=-4,constructor=1", FOX)
        self.assertEqual(self.browser.text("[aria-selected='true']"), "Head view")
        self.show("head", "--what", "weights", FOX)
        self.browser.press("3")

    def test_hostile_text(self):
        self.show("head", "--pair", "<!-- </script> \u202e", "</script><script>document.title = 'broken out'</script><b>x")
        self.assertEqual(self.browser.run("return document.querySelectorAll('b, script:not([id])').length"), 1)
        self.assertIn("</script><script>", self.browser.text("#sentence"))
        for view in "1234":
            self.browser.press(view)

    def test_themes_and_keyboard(self):
        self.show("head,theme=dark", FOX)
        corner = "return [...document.querySelector('canvas').getContext('2d').getImageData(2, 2, 1, 1).data]"
        self.assertLess(max(self.browser.run(corner)[:3]), 60)
        self.browser.run("window.dispatchEvent(new Event('beforeprint'))")
        self.assertEqual(self.browser.run(corner)[:3], [255, 255, 255])  # paper is white
        self.browser.run("window.dispatchEvent(new Event('afterprint'))")
        self.assertLess(max(self.browser.run(corner)[:3]), 60)
        self.browser.choose("#theme", "light")
        self.assertEqual(self.browser.run(corner)[:3], [255, 255, 255])
        self.canvas_focus()
        self.browser.press("ArrowDown", "Enter")
        self.assertIn("token=0", self.state())
        self.browser.press("ArrowDown")
        self.assertEqual(self.browser.run("return document.activeElement.tagName"), "CANVAS")
        self.browser.press("Escape")
        self.assertNotIn("token", self.state())

    def test_thinned_is_marked(self):
        self.show("map", "--keep", "2", FOX)
        self.assertIn("2 largest weights", self.browser.text("#notes"))
        for row in self.copied()[1:]:
            self.assertEqual(sum(float(x) > 0 for x in row[1:]), 2)


class Large(Browsing):
    """512 tokens × 12 × 12, where a model of that size is at hand."""

    def test_opens_in_three_seconds(self):
        base = pathlib.Path(os.environ.get("BERT_TEST_MODELS", "models")) / "bert-base-uncased"
        if not (base / "model.safetensors").exists():
            self.skipTest("bert-base-uncased is not here")
        path = pathlib.Path(self.folder.name) / "large.html"
        text = " ".join([FOX] * 60)
        for length, limit in ((128, 8e6), (512, 52e6)):
            subprocess.run([BERT, "attention", "-m", base, "--max-length", str(length), "-o", path, text], check=True, stderr=subprocess.DEVNULL)
            self.assertLess(path.stat().st_size, limit)
            for view in ("head", "map", "model"):
                took = min(self.time_to_open(f"file://{path}#{view}") for _ in range(3))  # others use this machine too
                print(f"{length} tokens, {path.stat().st_size / 1e6:.1f} MB, {view} view: open after {took:.2f} s")
                self.assertLess(took, 3)

    def time_to_open(self, url):
        """Seconds until the page is there with its first picture; the model view then fills in layer by layer."""
        self.browser.open(url)
        return self.browser.run("return performance.getEntriesByType('navigation')[0].loadEventEnd") / 1000


if __name__ == "__main__":
    main(*sys.argv[3:])
