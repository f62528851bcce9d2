"""What else attention says: steps of a layer, rollout, norms, distance, entropy, and many texts compared."""
import json
import math
import statistics

from command import Case, DATA, FOX, TINY, bert, lines, model, npz, real_model, safetensors

STUDIES = "rollout,norms,block_norms,distance,entropy"
STEPS = ("value_output", "head_output", "attention_output", "attention_sum", "ffn_pre", "ffn_post", "ffn_output", "ffn_sum")
PARTS = ("word_embeddings", "position_embeddings", "type_embeddings")
SHORT = "the cat sat"


def dump(what, *args):
    return safetensors(bert("attention", "-m", TINY, "--what", what, "--format", "safetensors", *args, check=0).stdout)


def heads_of(tensor):
    """[1, A, T, T] as A lists of T rows."""
    _, heads, tokens, _ = tensor.shape
    rows = tensor.rows()
    return [rows[a * tokens:(a + 1) * tokens] for a in range(heads)]


class Study(Case):
    def near(self, ours, truth, tolerance=1e-5):
        self.assertEqual(len(ours), len(truth))
        for x, y in zip(ours, truth):
            self.assertAlmostEqual(x, y, delta=tolerance)

    def test_names_and_shapes(self):
        tensors, _ = dump(STUDIES, SHORT)
        n = tensors["input_ids"].shape[1]
        expected = {"rollout": (1, n, n), "distance": (3, 4), "entropy": (3, 4)}
        for layer in range(3):
            expected |= {f"norms.{layer}": (1, 4, n, n), f"block_norms.{layer}": (1, n, n)}
        self.assertEqual({k: t.shape for k, t in tensors.items() if not k.endswith(("ids", "mask"))}, expected)

    def test_numbers_from_the_maps_beside_them(self):
        tensors, _ = dump("weights,value_output," + STUDIES, SHORT)
        n, rollout = tensors["input_ids"].shape[1], None
        for layer in range(3):
            maps = heads_of(tensors[f"attentions.{layer}"])
            entropy = [sum(-w * math.log(w) for row in m for w in row) / n for m in maps]
            distance = [sum(w * abs(i - j) for i, row in enumerate(m) for j, w in enumerate(row)) / n for m in maps]
            self.near(tensors["entropy"].rows()[layer], entropy)
            self.near(tensors["distance"].rows()[layer], distance)
            mixed = [[sum(m[i][j] for m in maps) / 8 + (i == j) / 2 for j in range(n)] for i in range(n)]
            rollout = mixed if rollout is None else [
                [sum(mixed[i][k] * rollout[k][j] for k in range(n)) for j in range(n)] for i in range(n)]
            lengths = [math.hypot(*row) for row in tensors[f"value_output.{layer}"].rows()]
            norms = [w * lengths[a * n + j] for a, m in enumerate(maps) for row in m for j, w in enumerate(row)]
            self.near(tensors[f"norms.{layer}"].values, norms)
        self.near(tensors["rollout"].values, [x for row in rollout for x in row])

    def test_layers_and_heads(self):
        whole, (some, metadata) = dump(STUDIES, SHORT)[0], dump(STUDIES, "--layers", "-1", "--heads", "3,1", SHORT)
        n = whole["input_ids"].shape[1]
        self.assertEqual({k for k in some if "norms" in k}, {"norms.2", "block_norms.2"})
        values = whole["norms.2"].values
        self.assertEqual(some["norms.2"].values, values[n * n:2 * n * n] + values[3 * n * n:])
        self.assertEqual(some["rollout"], whole["rollout"])
        self.assertEqual(some["block_norms.2"], whole["block_norms.2"])
        self.assertEqual((metadata["layers"], metadata["heads"]), ("[2]", "[1,3]"))
        for layers, heads in (("-1", "3,1"), ("0,2", "0"), ("1", "all"), ("all", "1,2,3"), ("2,0,1", "0,1,2,3")):
            some, metadata = dump(STUDIES, "--layers", layers, "--heads", heads, SHORT)
            kept = [sorted(range(n) if text == "all" else {int(x) % n for x in text.split(",")}) for text, n in ((layers, 3), (heads, 4))]
            for name in ("distance", "entropy"):
                rows = whole[name].rows()
                self.assertEqual(some[name].rows(), [[rows[l][a] for a in kept[1]] for l in kept[0]])
            for name, places, n in (("layers", kept[0], 3), ("heads", kept[1], 4)):
                self.assertEqual(metadata.get(name), json.dumps(places, separators=(",", ":")) if len(places) < n else None)
        (line,) = lines(bert("attention", "-m", TINY, "--what", "entropy", "--layers", "0,2", SHORT, check=0))
        self.assertEqual((line["layers"], len(line["entropy"]), "heads" in line), ([0, 2], 2, False))

    def test_options_that_would_change_nothing(self):
        for what in ("rollout", "block_norms", "hidden_states", "ffn_pre,attention_output", "word_embeddings", "logit_lens,rollout"):
            self.refused(2, f"--heads 0: nothing of --what {what} is of single heads", "attention", "-m", TINY, "--what", what, "--heads", "0", "a")
        for what in ("rollout", "rollout,type_embeddings"):
            self.refused(2, f"--layers 0: nothing of --what {what} is of single layers", "attention", "-m", TINY, "--what", what, "--layers", "0", "a")
        self.refused(2, "--top-k needs --what logit_lens, found weights", "attention", "-m", TINY, "--top-k", "5", "a")
        for what in ("context", "head_output", "value_output", "norms", "distance", "rollout,scores"):
            self.assertEqual(dump(what, "--heads", "1", SHORT)[1]["heads"], "[1]")

    def test_every_format(self):
        tensors, metadata = dump(STUDIES, SHORT)
        self.assertEqual(npz(bert("attention", "-m", TINY, "--what", STUDIES, "--format", "npz", SHORT, check=0).stdout), {**tensors, **metadata})
        (line,) = lines(bert("attention", "-m", TINY, "--what", STUDIES, SHORT, check=0))
        self.assertEqual((len(line["distance"]), len(line["distance"][0]), len(line["norms"]["1"])), (3, 4, 4))
        self.near([x for row in line["rollout"] for x in row], tensors["rollout"].values, 1e-7)
        self.near([x for row in line["entropy"] for x in row], tensors["entropy"].values, 1e-7)

    def test_steps_of_a_layer(self):
        tensors, _ = dump(",".join(STEPS + PARTS + ("hidden_states",)), "--layers", "1", SHORT)
        n = tensors["input_ids"].shape[1]
        shapes = {f"{name}.1": (1, n, 40) for name in STEPS} | {name: (1, n, 40) for name in PARTS}
        shapes |= dict.fromkeys(("value_output.1", "head_output.1"), (1, 4, n, 40)) | dict.fromkeys(("ffn_pre.1", "ffn_post.1"), (1, n, 100))
        self.assertEqual({k: t.shape for k, t in tensors.items() if k in shapes}, shapes)
        self.near(tensors["attention_sum.1"].values, [a + b for a, b in zip(tensors["attention_output.1"].values, tensors["hidden_states.1"].values)])
        path = self.folder / "dump.safetensors"
        bert("attention", "-m", TINY, "--what", ",".join(STEPS + PARTS), "-o", str(path), SHORT, check=0)
        said = json.loads(bert("verify", "-m", TINY, "--against", str(path), "--format", "json", SHORT, check=0).stdout)
        self.assertIn("word_embeddings", json.dumps(said))
        self.assertIn("head_output.2", json.dumps(said))

    def lens(self, folder, golden, delta):
        """Against Hugging Face's head on Hugging Face's hidden states, in float64."""
        want = json.loads((DATA / "study" / golden).read_text(encoding="utf-8"))
        (line,) = lines(bert("attention", "-m", folder, "--what", "logit_lens", want["text"], check=0))
        self.assertEqual(list(line["logit_lens"]), [str(layer) for layer in range(len(want["ids"]))])
        for layer, ids in enumerate(want["ids"]):
            self.assertEqual(line["logit_lens_ids"][str(layer)], ids)
            self.assertEqual(line["logit_lens_tokens"][str(layer)], want["words"][layer])
            for ours, truth in zip(line["logit_lens"][str(layer)], want["log_probs"][layer], strict=True):
                self.near(ours, truth, delta)

    def test_logit_lens(self):
        self.lens(TINY, "lens-tiny-bert.json", 2e-5)

    def test_logit_lens_of_real_weights(self):
        self.lens(real_model("bert-base-uncased"), "lens-bert-base-uncased.json", 2e-4)

    def test_logit_lens_in_every_format(self):
        args = ("attention", "-m", TINY, "--what", "logit_lens,hidden_states", "--layers", "1,-1", "--top-k", "3", SHORT)
        (line,) = lines(bert(*args, check=0))
        tensors, metadata = safetensors(bert(*args, "--format", "safetensors", check=0).stdout)
        self.assertEqual(npz(bert(*args, "--format", "npz", check=0).stdout), {**tensors, **metadata})
        n = tensors["input_ids"].shape[1]
        for layer in "13":
            self.assertEqual(tensors[f"logit_lens.{layer}"].shape, (1, n, 3))
            self.assertEqual(tensors[f"logit_lens_ids.{layer}"].rows(), line["logit_lens_ids"][layer])
            self.assertEqual(json.loads(metadata[f"logit_lens_tokens.{layer}"]), line["logit_lens_tokens"][layer])
        self.assertNotIn("logit_lens.0", tensors)
        (all_words,) = lines(bert("attention", "-m", TINY, "--what", "logit_lens", "--layers", "0", "--top-k", "3005", "a", check=0))
        for ids, log_probs in zip(all_words["logit_lens_ids"]["0"], all_words["logit_lens"]["0"]):
            self.assertEqual(sorted(ids), list(range(3005)))
            self.assertEqual(log_probs, sorted(log_probs, reverse=True))
            self.assertAlmostEqual(sum(map(math.exp, log_probs)), 1, delta=1e-4)

    def test_logit_lens_refuses(self):
        self.refused(1, "no head for masked words", "attention", "-m", model("tiny-bert-classifier"), "--what", "logit_lens", "a")
        self.refused(1, "the model has 3005 words", "attention", "-m", TINY, "--what", "logit_lens", "--top-k", "3006", "a")
        self.refused(2, "the page shows weights", "attention", "-m", TINY, "--what", "weights,logit_lens", "--format", "html", "a")

    def test_compare(self):
        texts = [SHORT, FOX, "he\tcan do it"]
        path = self.folder / "texts.txt"
        path.write_text("\n".join(texts) + "\n")
        (line,) = lines(bert("attention", "-m", TINY, "--compare", str(path), check=0))
        alone = [json.loads(bert("attention", "-m", TINY, "--what", "distance,entropy", stdin=text, check=0).stdout) for text in texts]
        self.assertEqual((line["texts"], line["tokens"]), (3, sum(len(x["input_ids"]) for x in alone)))
        for name in ("distance", "entropy"):
            for layer in range(3):
                for head in range(4):
                    values = [x[name][layer][head] for x in alone]
                    self.assertAlmostEqual(line[name]["mean"][layer][head], statistics.mean(values), delta=1e-6)
                    self.assertAlmostEqual(line[name]["sd"][layer][head], statistics.stdev(values), delta=1e-6)
        (same,) = lines(bert("attention", "-m", TINY, "--compare", "-", "--what", "entropy", stdin="\n".join(texts), check=0))
        self.assertEqual((same["entropy"], "distance" in same), (line["entropy"], False))
        (one,) = lines(bert("attention", "-m", TINY, "--compare", "-", stdin=SHORT, check=0))
        self.assertIsNone(one["entropy"]["sd"][0][0])

    def test_compare_refuses(self):
        self.refused(2, "takes the place of TEXT", "attention", "-m", TINY, "--compare", "-", "a")
        self.refused(2, "expected one of json", "attention", "-m", TINY, "--compare", "-", "--format", "npz")
        self.refused(2, "takes distance,entropy", "attention", "-m", TINY, "--compare", "-", "--what", "rollout", stdin="a")
        self.refused(2, "no --layers", "attention", "-m", TINY, "--compare", "-", "--layers", "0")
        for option in ("--top-k", "--keep", "--min-weight", "--view", "--stride"):
            self.refused(2, option, "attention", "-m", TINY, "--compare", "-", option, "5", stdin="a")
        self.refused(1, "cannot open", "attention", "-m", TINY, "--compare", "nowhere.txt")
        self.refused(1, "found none", "attention", "-m", TINY, "--compare", "-")
        done = bert("attention", "-m", TINY, "--compare", "-", "--jsonl", stdin='{"text":"a"}\n{"text":1}\n{"text":"b"}\n', check=1)
        self.assertEqual(lines(done)[0]["texts"], 2)
        self.assertIn(b"line 2", done.stderr)

    def test_page_and_bertviz_show_weights_only(self):
        self.refused(2, "the page shows weights", "attention", "-m", TINY, "--what", "weights,entropy", "--format", "html", "a")
        self.refused(2, "bertviz shows weights", "attention", "-m", TINY, "--what", "entropy", "--format", "bertviz", "a")
        expected = "--what foo: expected some of weights.*,ffn_sum,rollout,norms,block_norms,distance,entropy,logit_lens$"
        self.refused(2, expected, "attention", "-m", TINY, "--what", "foo", "a")
