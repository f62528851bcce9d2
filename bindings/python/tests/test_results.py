"""The same bits as the command, in the shapes that are promised."""
import io
import re
import unittest
import warnings

import numpy as np

import libbert
from common import FOX, ROOT, TEXTS, TINY, as_lines, bert, json_lines, npz
from libbert.model import SITES


def same(a, b):
    return a.dtype == b.dtype and a.shape == b.shape and a.tobytes() == b.tobytes()


class Results(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.model = libbert.Model(TINY, threads=2)
        cls.addClassCleanup(cls.model.close)

    def test_encode(self):
        expected = np.load(io.BytesIO(bert("encode", "-m", TINY, "--format", "npy", stdin=as_lines(TEXTS))))
        found = self.model.encode(TEXTS)
        self.assertTrue(same(found, expected))
        self.assertEqual(found.shape, (len(TEXTS), self.model.dim))
        self.assertTrue(same(self.model.encode(FOX), expected[0]))
        self.assertTrue(same(self.model.encode(iter(TEXTS[:3])), expected[:3]))
        self.assertEqual(self.model.encode([]).shape, (0, self.model.dim))

    def test_encode_options(self):
        for given, said in (({"pooling": "cls", "normalize": True}, ("--pooling", "cls", "--normalize")),
                            ({"pooling": "max", "normalize": False}, ("--pooling", "max", "--no-normalize")),
                            ({"pooling": "weightedmean"}, ("--pooling", "weightedmean")), ({"pooling": "pooler"}, ("--pooling", "pooler")),
                            ({"dim": 5}, ("--dim", "5"))):
            expected = np.load(io.BytesIO(bert("encode", "-m", TINY, "--format", "npy", *said, FOX)))
            self.assertTrue(same(self.model.encode([FOX], **given), expected), given)

    def test_prompt_and_windows(self):
        self.assertTrue(same(self.model.encode(["run"], prompt="he can "), self.model.encode(["he can run"])))
        long = "he can run " * 40
        with warnings.catch_warnings():
            warnings.simplefilter("error")   # nothing is cut
            found = self.model.encode(long, window=20, stride=4)
            self.assertTrue(same(self.model.encode("he can run", window=20), self.model.encode("he can run")))
            self.assertRaises(libbert.BertWarning, self.model.encode, long)
        self.assertFalse(np.array_equal(found, self.model.encode(long, window=20, stride=0)))

    def test_more_than_one_call(self):
        texts = [f"text {n}" for n in range(2500)]
        expected = np.load(io.BytesIO(bert("encode", "-m", TINY, "-q", "--format", "npy", stdin=as_lines(texts))))
        self.assertTrue(same(self.model.encode(texts), expected))

    def test_attention(self):
        expected = npz("attention", "-m", TINY, "--pair", "he can run", "what can he do")
        found = self.model.attention("what can he do", "he can run")
        tokens = len(self.model.tokenize("what can he do", "he can run"))
        self.assertEqual(len(found), self.model.info["layers"])
        for layer, weights in enumerate(found):
            self.assertEqual(weights.shape, (1, self.model.info["heads"], tokens, tokens))
            self.assertTrue(same(weights, expected[f"attentions.{layer}"]))

    def test_hidden_states(self):
        expected = npz("encode", "-m", TINY, "--what", "hidden_states,pooler_output", FOX)
        found = self.model.hidden_states(FOX)
        self.assertEqual(len(found), self.model.info["layers"] + 1)
        for layer, states in enumerate(found):
            self.assertTrue(same(states, expected[f"hidden_states.{layer}"]))
        for what in (["pooler_output"], "pooler_output"):
            self.assertTrue(same(self.model.run(FOX, what=what)["pooler_output"], expected["pooler_output"]))

    def test_every_site(self):
        names = [name for name in SITES if name != "pooler_output"]
        expected = npz("attention", "-m", TINY, "--what", ",".join(names), FOX)
        found = self.model.run(FOX, what=names)
        self.assertEqual(found["tokens"].ids.tolist(), expected["input_ids"][0].tolist())
        for name in names:
            stored = "attentions" if name == "weights" else name
            if isinstance(found[name], list):
                for layer, values in enumerate(found[name]):
                    self.assertTrue(same(values, expected[f"{stored}.{layer}"]), name)
            else:
                self.assertTrue(same(found[name], expected[stored]), name)

    def test_tokenize(self):
        for text in TEXTS[:6]:
            a, b = text if isinstance(text, tuple) else (text, None)
            pair = ("--pair", b) if b is not None else ()
            (chars,) = json_lines(bert("tokenize", "-m", TINY, "--offset-unit", "char", *pair, "--", a))
            (bytes_,) = json_lines(bert("tokenize", "-m", TINY, *pair, "--", a))
            found = self.model.tokenize(a, b)
            self.assertEqual(found.tokens, chars["tokens"])
            self.assertEqual(found.ids.tolist(), chars["ids"])
            self.assertEqual(found.type_ids.tolist(), chars["type_ids"])
            self.assertEqual(found.special_tokens_mask.tolist(), chars["special_tokens_mask"])
            self.assertEqual(found.offsets.tolist(), chars["offsets"])
            self.assertEqual(found.byte_offsets.tolist(), bytes_["offsets"])
        text = "caf\u00e9 fox"
        found = self.model.tokenize(text)
        self.assertEqual("".join(text[s:e] for s, e in found.offsets), "caf\u00e9fox")
        self.assertEqual(found.words[[0, -1]].tolist(), [-1, -1])
        self.assertNotEqual(self.model.tokenize("[MASK]", literal_specials=True).tokens, self.model.tokenize("[MASK]").tokens)
        self.assertEqual((len(self.model.tokenize(FOX, max_length=4)), self.model.tokenize(FOX, max_length=4).truncated > 0), (4, True))

    def test_sentence_b_start(self):
        for a, b in (("what can he do", "he can run"), (FOX, None)):
            said = json_lines(bert("attention", "-m", TINY, "--format", "bertviz", *(("--pair", b) if b else ()), a))[0]
            self.assertEqual(self.model.tokenize(a, b).sentence_b_start, said["sentence_b_start"])

    def test_any_threads(self):
        expected = self.model.encode(TEXTS)
        for threads in (None, 1, 3):
            with libbert.Model(TINY, threads=threads) as other:
                other.prepare()
                self.assertTrue(same(other.encode(TEXTS), expected), threads)

    def test_version(self):
        said = bert("--version").decode()
        self.assertTrue(said.startswith(f"bert {libbert.version()} (numerics {libbert.numerics()},"), said)
        self.assertEqual(libbert.__version__, libbert.version())

    def test_readmes(self):
        """What the two READMEs show runs, here with another model."""
        section = (ROOT / "README.md").read_text(encoding="utf-8").split("## From Python\n")[1].split("\n## ")[0]
        for text in (section, (ROOT / "bindings/python/README.md").read_text(encoding="utf-8")):
            block = re.search(r"^```python\n(.*?)^```", text, re.M | re.S)[1]
            self.assertIn("models/all-MiniLM-L6-v2", block)
            exec(block.replace("models/all-MiniLM-L6-v2", TINY), {})


if __name__ == "__main__":
    unittest.main()
