"""bert ablate: the numbers are those that encode and attention give for the changed text."""
import json
import math
import re

from command import Case, TINY, bert, lines, model

WORDS = "the quick dog"


def ablate(*args, stdin=b""):
    (line,) = lines(bert("ablate", "-m", TINY, *args, stdin=stdin, check=0))
    return line


def vector(ids):
    """The mean over tokens of the last hidden states, which is how tiny-bert is pooled."""
    (line,) = lines(bert("encode", "-m", TINY, "--ids", "-", "--what", "last_hidden_state", stdin=str(ids), check=0))
    rows = line["last_hidden_state"]
    return [sum(column) / len(rows) for column in zip(*rows)]


def change(x, y):
    return 1 - sum(a * b for a, b in zip(x, y)) / math.hypot(*x) / math.hypot(*y)


class Ablate(Case):
    def test_shape(self):
        found = ablate(WORDS)
        n = len(found["tokens"])
        self.assertEqual(list(found), ["text", "tokens", "silence", "token_effects", "head_effects", "head_log_probs",
                                       "head_token_effects", "rank_correlation"])
        self.assertEqual([e["index"] for e in found["token_effects"]], list(range(1, n - 1)))
        self.assertEqual([len(row) for row in found["head_effects"]], [4, 4, 4])
        self.assertEqual(len(found["head_token_effects"][2][3]), n)
        for name in ("masked", "removed"):
            self.assertEqual(list(found["rank_correlation"][name]), ["received", "rollout", "norm"])
            for effect in found["token_effects"]:
                self.assertEqual(list(effect[name]), ["embedding", "log_prob", "tokens"])
        self.assertEqual([x is None for x in found["token_effects"][0]["removed"]["tokens"]][:3], [False, True, False])

    def test_effects_of_tokens(self):
        found = ablate(WORDS)
        (line,) = lines(bert("tokenize", "-m", TINY, WORDS, check=0))
        ids, mask = line["ids"], lines(bert("tokenize", "-m", TINY, "[MASK]", check=0))[0]["ids"][1]
        plain = vector(ids)
        self.assertEqual(line["tokens"], found["tokens"])
        for effect in found["token_effects"]:
            i = effect["index"]
            masked, removed = ids[:i] + [mask] + ids[i + 1:], ids[:i] + ids[i + 1:]
            self.assertAlmostEqual(effect["masked"]["embedding"], change(plain, vector(masked)), delta=1e-6)
            self.assertAlmostEqual(effect["removed"]["embedding"], change(plain, vector(removed)), delta=1e-6)

    def test_silence(self):
        zero, uniform = ablate(WORDS), ablate("--silence", "uniform", WORDS)
        self.assertEqual((zero["silence"], uniform["silence"]), ("zero", "uniform"))
        self.assertNotEqual(zero["head_effects"], uniform["head_effects"])
        self.assertEqual(zero["token_effects"], uniform["token_effects"])

    def test_pair_stdin_and_file(self):
        found = ablate("--pair", "is lazy", WORDS)
        self.assertEqual((found["text"], found["pair"]), (WORDS, "is lazy"))
        inner = found["tokens"].index("[SEP]")
        self.assertNotIn(inner, [e["index"] for e in found["token_effects"]])
        self.assertEqual(ablate(stdin=f"{WORDS}\tis lazy\n"), found)
        for text_id in ('"a\\u0041"', "1e2", '{"n": [1, null]}'):
            record = f'{{"pair": "is lazy", "id": {text_id}, "text": "{WORDS}"}}'
            with_id = bert("ablate", "-m", TINY, "--jsonl", stdin=record, check=0).stdout.decode()
            self.assertTrue(with_id.startswith(f'{{"id":{text_id},"text":'), with_id[:80])
            self.assertEqual(json.loads(with_id), {**found, "id": json.loads(text_id)})
        out = self.folder / "out.json"
        bert("ablate", "-m", TINY, "-o", str(out), "--pair", "is lazy", WORDS, check=0)
        self.assertIn('"rank_correlation"', out.read_text())

    def test_without_a_head_and_without_text(self):
        (found,) = lines(bert("ablate", "-m", model("tiny-bert-relu"), "", check=0))
        self.assertEqual(found["token_effects"], [])
        self.assertIsNone(found["rank_correlation"]["masked"]["norm"])
        (found,) = lines(bert("ablate", "-m", model("tiny-bert-classifier"), WORDS, check=0))
        self.assertNotIn("head_log_probs", found)
        self.assertNotIn("log_prob", found["token_effects"][0]["masked"])

    def test_page(self):
        """The page has the JSON as it is, and nothing that it would load; tests/check_ablate_page.py looks at it."""
        out = self.folder / "out.html"
        hostile = "</script><script>alert(1)</script><!-- {{data}} \u2028"
        for args in ((WORDS,), ("--silence", "uniform", "--pair", hostile, hostile)):
            bert("ablate", "-m", TINY + "/", "-o", str(out), *args, check=0)
            page = out.read_text(encoding="utf-8")
            facts = json.loads(re.search(r'<script type="application/json" id="facts">(.*?)</script>', page, re.S)[1])
            self.assertEqual(facts["ablation"], ablate(*args))
            self.assertEqual((facts["model"], facts["numerics"]), ("tiny-bert", "1"))
            self.assertEqual(len(re.findall("<script", page)), 2)
            self.assertEqual(re.findall(r"\w+://", page), [])
            self.assertIn("default-src 'none'", page)

    def test_refuses(self):
        self.refused(2, "expected one of json, html$", "ablate", "-m", TINY, "--format", "npz", "a")
        self.refused(2, "expected one of json, html$", "ablate", "-m", TINY, "-o", str(self.folder / "x.npz"), "a")
        self.refused(2, "takes one text", "ablate", "-m", TINY, "a", "b")
        self.refused(1, "found more", "ablate", "-m", TINY, stdin="a\nb\n")
        self.refused(1, "found none", "ablate", "-m", TINY)
        self.refused(1, "decoder", "ablate", "-m", model("tiny-bert-decoder"), "a")
