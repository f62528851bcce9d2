"""The page of attention, read without a browser: one file, nothing it would load, the numbers that were computed."""
import base64
import html.parser
import json
import math
import re
import struct

from command import Case, FOX, TINY, bert

HOSTILE = "</script><script>alert(1)</script><!-- <b> &amp; \" ' \\ \u2028 ]]> {{data}} \u202e x </style>"


class Reader(html.parser.HTMLParser):
    """Elements, and the text of scripts by id."""

    def __init__(self, text):
        super().__init__()
        self.elements, self.scripts, self.open = [], {}, None
        self.feed(text)

    def handle_starttag(self, tag, attributes):
        self.elements.append((tag, dict(attributes)))
        self.open = dict(attributes).get("id", "code") if tag == "script" else None

    def handle_endtag(self, tag):
        self.open = None

    def handle_data(self, data):
        if self.open:
            self.scripts[self.open] = self.scripts.get(self.open, "") + data


class Page:
    def __init__(self, *args, stdin=b""):
        self.text = bert("attention", "-m", TINY, "--format", "html", *args, stdin=stdin, check=0).stdout.decode()
        self.reader = Reader(self.text)
        self.facts = json.loads(self.reader.scripts["facts"])

    def bytes(self, name):
        return base64.b64decode(self.reader.scripts[name], validate=True)

    def thin_rows(self, name):
        data, rows, at = self.bytes(name), [], 0
        while at < len(data):
            n = struct.unpack_from("<H", data, at)[0]
            rows.append({column: (code / 255) ** 2 for column, code in struct.iter_unpack("<HB", data[at + 2:at + 2 + 3 * n])})
            at += 2 + 3 * n
        return rows


def dump(*args):
    return json.loads(bert("attention", "-m", TINY, *args, check=0).stdout)


def flat(x):
    return [z for y in x for z in flat(y)] if isinstance(x, list) else [x]


class PageTest(Case):
    def test_one_file(self):
        page = Page(FOX)
        self.assertEqual(set(re.findall(r"\w+://[^\"'`\s]*", page.text)), {"http://www.w3.org/2000/svg"})  # the name of a format
        for tag, attributes in page.reader.elements:
            self.assertNotIn(tag, ("link", "iframe", "img", "object", "embed"))
            self.assertFalse({"src", "href", "onload", "onclick"} & set(attributes), (tag, attributes))
        policy = [a["content"] for t, a in page.reader.elements if t == "meta" and a.get("http-equiv") == "Content-Security-Policy"]
        self.assertIn("default-src 'none'", policy[0])
        self.assertNotIn("{{", re.sub(r"<script.*?</script>", "", page.text, flags=re.S))

    def test_hostile_text(self):
        plain, page = Page("a"), Page("--pair", HOSTILE, HOSTILE)
        self.assertEqual([tag for tag, _ in page.reader.elements], [tag for tag, _ in plain.reader.elements])
        text, wanted = page.facts["texts"][0], dump("--pair", HOSTILE, HOSTILE)
        self.assertEqual((text["text"], text["pair"], text["tokens"]), (HOSTILE, HOSTILE, wanted["tokens"]))
        self.assertNotIn("<", page.reader.scripts["facts"])

    def test_weights(self):
        page, wanted = Page(FOX), dump("--what", "weights,query,key", FOX)
        T = len(wanted["tokens"])
        self.assertEqual(page.facts["texts"][0]["tokens"], wanted["tokens"])
        self.assertEqual(page.facts["heads"], [0, 1, 2, 3])
        for layer in "012":
            codes, weights = page.bytes(f"0.attentions.{layer}"), flat(wanted["attentions"][layer])
            self.assertEqual(len(codes), 4 * T * T)
            self.assertLessEqual(max(abs((c / 255) ** 2 - w) for c, w in zip(codes, weights)), 1 / 255)
            self.assertLessEqual(max(abs(c - 255 * math.sqrt(w)) for c, w in zip(codes, weights)), 0.501)
            for name in ("query", "key"):
                data, rows = page.bytes(f"0.{name}.{layer}"), [row for head in wanted[name][layer] for row in head]
                for i, row in enumerate(rows):
                    scale, *values = struct.unpack_from("<f10b", data, 14 * i)
                    self.assertAlmostEqual(127 * scale, max(map(abs, row)), places=5)
                    self.assertLessEqual(max(abs(v * scale - x) for v, x in zip(values, row)), 0.501 * scale)

    def test_statistics(self):
        page, wanted = Page(FOX), dump(FOX)
        T = len(wanted["tokens"])
        for layer in page.facts["texts"][0]["layers"]:
            for a, head in enumerate(wanted["attentions"][str(layer["layer"])]):
                entropy = -sum(w * math.log(w) for row in head for w in row if w > 0) / T
                distance = sum(w * abs(i - j) for i, row in enumerate(head) for j, w in enumerate(row)) / T
                self.assertAlmostEqual(layer["entropy"][a], entropy, places=3)
                self.assertAlmostEqual(layer["distance"][a], distance, places=3)

    def test_thinned(self):
        weights = [row for head in dump("--layers", "1", FOX)["attentions"]["1"] for row in head]
        page = Page("--layers", "1", "--keep", "3", FOX)
        self.assertEqual((page.facts["keep"], page.facts["min_weight"]), (3, 0))
        for kept, row in zip(page.thin_rows("0.attentions.1"), weights, strict=True):
            self.assertEqual(len(kept), 3)
            third = sorted(row)[-3]
            for column, w in kept.items():
                self.assertLessEqual(abs(w - row[column]), 1 / 255)
                self.assertGreater(row[column], third - 1 / 255)
        page = Page("--layers", "1", "--min-weight", "0.05", "--keep", "999", FOX)
        for kept, row in zip(page.thin_rows("0.attentions.1"), weights, strict=True):
            self.assertEqual(set(kept), {j for j, w in enumerate(row) if w >= 0.05})
        page = Page("--layers", "1", "--min-weight", "2", FOX)
        self.assertEqual(page.thin_rows("0.attentions.1"), [{}] * len(weights))

    def test_layers_and_heads(self):
        page, whole = Page("--layers", "0,-1", "--heads", "1,3", FOX), Page(FOX)
        self.assertEqual([x["layer"] for x in page.facts["texts"][0]["layers"]], [0, 2])
        self.assertEqual(page.facts["heads"], [1, 3])
        size = page.facts["texts"][0]["count"] ** 2
        codes = whole.bytes("0.attentions.2")
        self.assertEqual(page.bytes("0.attentions.2"), codes[size:2 * size] + codes[3 * size:])

    def test_several_texts(self):
        page = Page(stdin=f"{FOX}\nhe can\twhat can he\n")
        self.assertEqual([(t["text"], t["second"]) for t in page.facts["texts"]][0], (FOX, -1))
        wanted = dump("--pair", "what can he", "he can")
        self.assertEqual(page.facts["texts"][1]["second"], wanted["token_type_ids"].index(1))
        self.assertEqual(page.bytes("1.attentions.0"), Page("--pair", "what can he", "he can").bytes("0.attentions.0"))

    def test_queries_and_keys(self):
        self.assertIn("0.query.0", Page(FOX).reader.scripts)
        self.assertNotIn("0.query.0", Page("--what", "weights", FOX).reader.scripts)

    def test_options(self):
        self.assertEqual(Page("--view", "map,layer=2,head=1", "a").facts["view"], "map,layer=2,head=1")
        for view in ("neuron,layer=0,head=3,token=3", "head,heads=0.3,hide=special.punctuation,min=0.2", "head,heads=none,token=.7",
                     "model,open=2.3,theme=dark,words=1,sort=entropy", "map,text=0,beside=1,filter=ab,token=3.7,hide=special", "model"):
            self.assertEqual(Page("--view", view, "a").facts["view"], view)
        for view in ("atlas", "map,colour=red", "map,layer", "", "head,", "map,layer=99999999999999999999", "map,layer=3", "map,layer=-1",
                     "map,layer=", "map,layer=1x", "map,head=4", "map,theme=pink", "map,theme=", "map,theme=darker", "map,theme=dar",
                     "head,heads=0.", "head,heads=0.4", "head,heads=.1", "map,token=3.", "map,token=.", "model,open=2", "model,open=3.0",
                     "map,hide=special.special", "map,min=0.03", "map,words=yes", "map,theme=auto|light", "map,layer=1,,head=2", "map,=1"):
            self.refused(2, "--view", "attention", "-m", TINY, "--format", "html", "--view", view, "a")
        self.refused(2, "for the page", "attention", "-m", TINY, "--keep", "3", "a")
        self.refused(2, "the page shows", "attention", "-m", TINY, "--format", "html", "--what", "scores", "a")
        self.refused(2, "the page shows", "attention", "-m", TINY, "--format", "html", "--what", "query,key", "a")
        self.refused(2, "--keep 0", "attention", "-m", TINY, "--format", "html", "--keep", "0", "a")
