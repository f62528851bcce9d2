"""Sentence models and long texts at the command line: prompts, modules, encode and attention in windows."""
import json
import math
import pathlib
import shutil
import struct
import unittest

from command import DATA, TINY, Case, bert, lines, model, npz, safetensors

SENTENCE = DATA / "pipelines" / "sentence"
LONG = "the quick brown fox jumps over the lazy dog and then it sat on a mat with the cat for a very long time"


def golden(name, file="golden.json"):
    return json.loads((SENTENCE / name / file).read_text(encoding="utf-8"))


def write_floats(path, tensors):
    """A safetensors file of {name: (shape, values)}."""
    header, data = {}, b""
    for name, (shape, values) in tensors.items():
        more = struct.pack(f"<{len(values)}f", *values)
        header[name] = {"dtype": "F32", "shape": shape, "data_offsets": [len(data), len(data) + len(more)]}
        data += more
    text = json.dumps(header).encode()
    path.write_bytes(struct.pack("<Q", len(text)) + text + data)


class Prompts(Case):
    def vectors(self, *args):
        texts = golden("prompts")["texts"][:4]
        done = bert("encode", "-m", str(SENTENCE / "prompts"), *args, stdin="\n".join(texts) + "\n", check=0)
        return [line["embedding"] for line in lines(done)]

    def close_to(self, found, prompt, dim=None):
        expected = next(run["vectors"] for run in golden("prompts")["runs"] if (run["prompt"], run["dim"]) == (prompt, dim))
        for row, right in zip(found, expected, strict=False):
            for x, y in zip(row, right, strict=True):
                self.assertAlmostEqual(x, y, delta=4e-6)

    def test_the_default_one_by_name_and_none(self):
        self.close_to(self.vectors(), None)
        self.close_to(self.vectors("--prompt", "passage"), "passage")
        self.close_to(self.vectors("--prompt", "passage", "--dim", "5"), "passage", 5)
        self.close_to(self.vectors("--no-prompt"), "none")

    def test_a_cut_vector_is_normalized_only_if_asked(self):
        """The folder has no Normalize module: sentence-transformers only cuts, and so the golden vectors have other lengths."""
        cut = self.vectors("--dim", "5")
        self.close_to(cut, None, 5)
        for row, found in zip(cut, self.vectors("--dim", "5", "--normalize"), strict=True):
            self.assertGreater(math.hypot(*row), 1.5)
            for x, y in zip(found, row, strict=True):
                self.assertAlmostEqual(x, y / math.hypot(*row), delta=1e-6)

    def test_the_same_where_tensors_are_written_too(self):
        done = bert("encode", "-m", str(SENTENCE / "prompts"), "--what", "embedding,last_hidden_state", "The cat sat on the mat.",
                    check=0)
        line = lines(done)[0]
        self.close_to([line["embedding"]], None)
        self.assertEqual(line["text"], "The cat sat on the mat.")
        self.assertEqual(len(line["last_hidden_state"]), line["tokens"])

    def test_tokens_of_the_prompt_that_are_not_pooled(self):
        expected = next(run["vectors"] for run in golden("prompts-left-out")["runs"] if run["prompt"] == "query")
        done = bert("encode", "-m", str(SENTENCE / "prompts-left-out"), "--prompt", "query", "--what",
                    "embedding,pooler_output", "The cat sat on the mat.", check=0)
        for x, y in zip(lines(done)[0]["embedding"], expected[0], strict=True):
            self.assertAlmostEqual(x, y, delta=4e-6)

    def test_what_does_not_go(self):
        folder = str(SENTENCE / "prompts")
        self.refused(1, "no prompt nonesuch: .*document, none, passage, query", "encode", "-m", folder, "--prompt",
                     "nonesuch", "x")
        self.refused(2, "--no-prompt", "encode", "-m", folder, "--prompt", "query", "--no-prompt", "x")
        self.refused(1, "dim 17: the model's vectors have 16", "encode", "-m", folder, "--dim", "17", "x")

    def test_inspect_says_them(self):
        done = bert("inspect", "-m", str(SENTENCE / "prompts"), "--format", "json", check=0)
        assumed = json.loads(done.stdout)["assumed"]
        self.assertEqual((assumed["prompts"], assumed["default_prompt"]), (["document", "none", "passage", "query"], "query"))
        self.assertIn(b"query (default)", bert("inspect", "-m", str(SENTENCE / "prompts"), check=0).stdout)


class Modules(Case):
    def changed(self, name, file, change):
        """A copy of the folder with one JSON file changed; an empty change removes it."""
        folder = self.folder / f"{name}-{len(list(self.folder.iterdir()))}"
        shutil.copytree(SENTENCE / name, folder)
        path = folder / file
        value = json.loads(path.read_text(encoding="utf-8")) if path.suffix == ".json" else None
        path.unlink()
        if change:
            path.write_text(json.dumps(change(value)), encoding="utf-8")
        return str(folder)

    def test_inspect_says_what_comes_out(self):
        for name, pooling, dense, dim in (("dense", "mean", 2, 12), ("modes", "lasttoken+mean+cls", 0, 48),
                                          ("every-flag", "cls+max+mean+mean_sqrt_len+weightedmean+lasttoken", 0, 96)):
            assumed = json.loads(bert("inspect", "-m", str(SENTENCE / name), "--format", "json", check=0).stdout)["assumed"]
            self.assertEqual((assumed["pooling"], assumed["dense"], assumed["dim"]), (pooling, dense, dim))
        self.assertIn(b"mean, 2 Dense, normalized, 12 numbers", bert("inspect", "-m", str(SENTENCE / "dense"), check=0).stdout)

    def test_what_is_refused_by_name(self):
        config, weights = "2_Dense/config.json", "2_Dense/model.safetensors"
        cases = (
            (config, lambda c: c | {"activation_function": "torch.nn.modules.activation.Softsign"}, "activation.Softsign is not"),
            (config, lambda c: c | {"in_features": 17}, r"linear.weight: expected 24 × 17"),
            (config, lambda c: c | {"out_features": 0}, "out_features: expected 1 to"),
            (config, lambda c: c | {"bias": "yes"}, "bias: expected true or false"),
            (config, lambda c: c | {"module_input_name": "token_embeddings"}, "token_embeddings: only sentence_embedding"),
            (config, lambda c: c | {"use_residual": True}, "2_Dense/model.safetensors: expected tensor residual.weight"),
            (config, None, "2_Dense/config.json: modules.json names this folder"),
            (weights, None, "model.safetensors: no such file"),
            ("3_Dense/config.json", lambda c: c | {"bias": True}, "expected tensor linear.bias"),
            ("4_Normalize/config.json", lambda c: c | {"module_input_name": "token_embeddings"}, "4_Normalize.*token_embeddings"),
            ("modules.json", lambda m: m[:2] + m[3:], "takes 24 values, what comes before it gives 16"),
            ("modules.json", lambda m: [m[0], m[2], m[1]], "Dense: expected Transformer, Pooling"),
            ("modules.json", lambda m: m[1:], "Pooling: expected Transformer, Pooling"),
            ("modules.json", lambda m: [*m, m[1]], "Pooling: expected Transformer, Pooling"),
            ("modules.json", lambda m: [*m, m[2] | {"type": "sentence_transformers.models.LSTM"}], "models.LSTM is not known"),
            ("modules.json", lambda m: [m[0] | {"type": "custom_st.Transformer"}, *m[1:]], "custom_st.Transformer is not known"),
            ("modules.json", lambda m: [m[0] | {"type": "Transformer"}, *m[1:]], "module Transformer is not known"),
            ("config_sentence_transformers.json", lambda c: c | {"default_prompt_name": "none such"}, "found none such"),
            ("config_sentence_transformers.json", lambda c: c | {"prompts": {"a": 1}}, "expected texts by name"),
        )
        for file, change, expected in cases:
            with self.subTest(file=file, expected=expected):
                self.refused(1, expected, "encode", "-m", self.changed("dense", file, change), "x")

    def test_a_dense_module_that_takes_one_value(self):
        """Behind one that gives 0.5 whatever comes: (1, 2, -4) · 0.5, normalized."""
        folder = pathlib.Path(self.changed("dense", "2_Dense/config.json", lambda c: c | {
            "out_features": 1, "activation_function": "torch.nn.modules.linear.Identity"}))
        config = folder / "3_Dense/config.json"
        config.write_text(json.dumps(json.loads(config.read_text(encoding="utf-8")) | {
            "in_features": 1, "out_features": 3, "activation_function": "torch.nn.modules.linear.Identity"}), encoding="utf-8")
        write_floats(folder / "2_Dense/model.safetensors", {"linear.weight": ([1, 16], [0] * 16), "linear.bias": ([1], [0.5])})
        write_floats(folder / "3_Dense/model.safetensors", {"linear.weight": ([3, 1], [1, 2, -4])})
        found = lines(bert("encode", "-m", str(folder), "the cat", check=0))[0]["embedding"]
        for x, right in zip(found, (1, 2, -4), strict=True):
            self.assertAlmostEqual(x, right / 21 ** 0.5, delta=1e-7)

    def test_an_activation_of_the_models_own_is_tanh_with_a_warning(self):
        folder = self.changed("dense", "2_Dense/config.json", lambda c: c | {"activation_function": "my.module.Swish"})
        done = bert("encode", "-m", folder, "x", check=0)
        self.assertIn(b"my.module.Swish is not one of torch's: Tanh is used", done.stderr)
        same = bert("encode", "-m", str(SENTENCE / "dense"), "x", check=0)
        self.assertEqual(done.stdout, same.stdout)
        bert("encode", "-m", folder, "--strict", "x", check=1)

    def test_another_pooling_than_the_dense_module_takes(self):
        folder = self.changed("modes", "modules.json", lambda m: m)
        self.assertEqual(len(lines(bert("encode", "-m", folder, "--pooling", "max", "x", check=0))[0]["embedding"]), 16)


class Windows(Case):
    def test_the_vector_and_the_states_are_those_of_hugging_faces_windows(self):
        right = golden("every-flag", "windows.json")
        options = ("--window", str(right["window"]), "--stride", str(right["stride"]))
        folder = str(SENTENCE / "every-flag")
        alone = lines(bert("encode", "-m", folder, *options, right["text"], "the cat", check=0))
        both = lines(bert("encode", "-m", folder, *options, "--what", "embedding,last_hidden_state", right["text"], "the cat",
                          check=0))
        for x, y in zip(alone[0]["embedding"], right["vector"], strict=True):
            self.assertAlmostEqual(x, y, delta=4e-6)
        for row, expected in zip(both[0]["last_hidden_state"], right["hidden"], strict=True):
            for x, y in zip(row, expected, strict=True):
                self.assertAlmostEqual(x, y, delta=4e-6)
        for a, b in zip(alone, both, strict=True):
            self.assertEqual(a["embedding"], b["embedding"])
        self.assertEqual((alone[0]["windows"], alone[0]["tokens"]), (right["windows"], len(right["hidden"])))
        self.assertNotIn("windows", alone[1])
        self.assertEqual(alone[1], lines(bert("encode", "-m", folder, "the cat", check=0))[0])

    def test_every_kind_of_tensor_and_format(self):
        whole = lines(bert("tokenize", "-m", TINY, LONG, check=0))[0]
        args = ("encode", "-m", TINY, "--window", "12", "--stride", "4", "--what",
                "embedding,last_hidden_state,hidden_states,pooler_output", LONG, "short")
        out = npz(bert(*args, "--format", "npz", check=0).stdout)
        other, metadata = safetensors(bert(*args, "--format", "safetensors", check=0).stdout)
        self.assertEqual(out["0.input_ids"].values, whole["ids"])
        self.assertEqual(json.loads(out["0.tokens"]), whole["tokens"])
        self.assertEqual(json.loads(metadata["0.tokens"]), whole["tokens"])
        self.assertEqual(out["embedding"].shape, (2, 40))
        for name in ("last_hidden_state", "hidden_states.0", "hidden_states.3"):
            self.assertEqual(out[f"0.{name}"].shape, (1, len(whole["ids"]), 40))
        self.assertEqual(out["0.last_hidden_state"], out["0.hidden_states.3"])
        self.assertEqual(out["0.pooler_output"].shape, (1, 40))
        for name, value in other.items():
            self.assertEqual(out[name], value, name)

    def test_a_stride_that_is_too_large_is_an_error_of_the_line(self):
        done = bert("encode", "-m", TINY, "--window", "12", "--stride", "10", "--on-error", "null",
                    stdin=f"short\n{LONG}\n", check=1)
        first, second = lines(done)
        self.assertIn("embedding", first)
        self.assertRegex(second["error"], "stride 10")
        self.assertRegex(done.stderr.decode(), "line 2: stride 10")
        for what in ("embedding", "last_hidden_state"):
            done = bert("encode", "-m", TINY, "--window", "12", "--stride", "20", "--what", what, "short", check=1)
            self.assertRegex(done.stderr.decode(), "^bert: text 1: stride 20")

    def test_a_window_without_room_is_an_error_of_the_line(self):
        """HF's overflow is then one part of everything, which may be more than the model has positions."""
        ner, qa = model("tiny-bert-ner"), model("tiny-bert-qa")
        for command, folder, window, text in (("encode", TINY, 2, LONG), ("encode", TINY, 3, f"{LONG}\tthe cat"),
                                              ("ner", ner, 2, LONG), ("qa", qa, 3, f"the cat\t{LONG}")):
            done = bert(command, "-m", folder, "--window", str(window), "--stride", "0", "--on-error", "null",
                        stdin=f"{text}\n\t\n" if "\t" in text else f"{text}\n\n", check=1)
            first, second = lines(done)
            self.assertEqual(first, {"error": f"max_length {window} has room for special tokens only"})
            self.assertNotIn("error", second)
        self.refused(1, "has room for special tokens only", "attention", "-m", TINY, "--window", "2", LONG)
        self.refused(1, "max_length 4 has no room for both texts", "encode", "-m", TINY, "--window", "4", "--stride", "0",
                     "--pair", "c d", "a b")
        self.assertEqual(len(lines(bert("tokenize", "-m", TINY, "--max-length", "2", "--stride", "0", "a b", check=0))[0]
                             ["overflowing"][0]["ids"]), 4)

    def test_a_pair_of_too_many_windows_is_an_error_of_the_line(self):
        """Each window of the one text with each of the other: 5000 * 4000, of 4096 that are possible."""
        long = "a " * 20000
        done = bert("encode", "-m", TINY, "--window", "12", "--stride", "0", "--on-error", "null",
                    stdin=f"{long}\t{long}\nshort\n", check=1)
        first, second = lines(done)
        self.assertRegex(first["error"], "has [0-9]+ × [0-9]+ parts; at most 4096 are possible")
        self.assertIn("embedding", second)

    def test_pairs_say_which_text_is_cut_into_windows(self):
        done = bert("encode", "-m", TINY, "--window", "16", "--truncation", "only_second", "--what", "last_hidden_state",
                    "--pair", LONG, "the cat", check=0)
        whole = lines(bert("tokenize", "-m", TINY, "--pair", LONG, "the cat", check=0))[0]
        self.assertEqual(len(lines(done)[0]["last_hidden_state"]), len(whole["ids"]))

    def test_what_does_not_go_with_windows(self):
        ids = self.folder / "ids.jsonl"
        ids.write_text("[2, 3]\n")
        for said, *args in (("--max-length", "--max-length", "9", "x"), ("--truncation error", "--truncation", "error", "x"),
                            ("--ids", "--ids", str(ids))):
            self.refused(2, said, "encode", "-m", TINY, "--window", "12", *args)
        self.refused(2, "--stride needs --window", "encode", "-m", TINY, "--stride", "3", "x")
        self.refused(1, "--window 65: the model has 64 positions", "encode", "-m", TINY, "--window", "65", "x")
        self.refused(2, "--compare", "attention", "-m", TINY, "--window", "12", "--compare", "x")


class AttentionWindows(Case):
    ARGS = ("attention", "-m", TINY, "--window", "12", "--stride", "4")

    def test_maps_of_each_window_with_its_offsets(self):
        parts = lines(bert("tokenize", "-m", TINY, "--max-length", "12", "--stride", "4", LONG, check=0))[0]
        parts = [parts, *parts["overflowing"]]
        out = npz(bert(*self.ARGS, "--what", "weights,hidden_states", "--format", "npz", LONG, check=0).stdout)
        other, metadata = safetensors(bert(*self.ARGS, "--format", "safetensors", LONG, check=0).stdout)
        objects = lines(bert(*self.ARGS, "--format", "json", LONG, check=0))
        pictures = lines(bert(*self.ARGS, "--format", "bertviz", LONG, check=0))
        self.assertTrue(len(parts) == len(objects) == len(pictures) == 6)
        for n, part in enumerate(parts):
            T = len(part["ids"])
            self.assertEqual(out[f"{n}.attentions.2"].shape, (1, 4, T, T))
            self.assertEqual(out[f"{n}.attentions.2"], other[f"{n}.attentions.2"])
            self.assertEqual(out[f"{n}.input_ids"].values, part["ids"])
            for offsets in (json.loads(out[f"{n}.offsets"]), json.loads(metadata[f"{n}.offsets"]), objects[n]["offsets"]):
                self.assertEqual(offsets, part["offsets"])
            self.assertEqual(objects[n]["window"], {"number": n, "of": 6, "first": [6 * n, 0]})
            self.assertEqual(objects[n]["tokens"], part["tokens"])
            self.assertEqual(pictures[n]["tokens"], part["tokens"])

    def test_a_window_has_the_bits_of_its_tokens_alone(self):
        part = lines(bert("tokenize", "-m", TINY, "--max-length", "12", "--stride", "4", LONG, check=0))[0]["overflowing"][1]
        ids = self.folder / "ids.jsonl"
        ids.write_text(json.dumps(part["ids"]) + "\n")
        out = npz(bert(*self.ARGS, "--format", "npz", LONG, check=0).stdout)
        alone = npz(bert("attention", "-m", TINY, "--ids", str(ids), "--format", "npz", check=0).stdout)
        self.assertEqual(out["2.attentions.1"], alone["attentions.1"])

    def test_a_text_of_one_window_has_plain_names(self):
        out = npz(bert(*self.ARGS, "--format", "npz", "short", check=0).stdout)
        self.assertIn("attentions.0", out)
        self.assertEqual(json.loads(out["window"]), {"number": 0, "of": 1, "first": [0, 0]})

    def test_a_page_shows_the_windows_one_after_another(self):
        page = self.folder / "x.html"
        bert(*self.ARGS, "-o", str(page), LONG, check=0)
        self.assertEqual(page.read_text(encoding="utf-8").count('"##z"'), 1)


if __name__ == "__main__":
    unittest.main()
