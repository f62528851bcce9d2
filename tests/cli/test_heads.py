"""Task heads: what the pipelines of transformers and sentence-transformers say (tests/data/heads, made by
scripts/make_head_goldens.py in float64), and the ways in and out."""
import json
import math
import pathlib
import shutil
import struct
import tempfile

from command import Case, DATA, FOX, TINY, bert, lines, model, real_model

QA, NER, RERANKER, CLASSIFIER = (model(f"tiny-bert-{name}") for name in ("qa", "ner", "reranker", "classifier"))


def golden(name):
    return [json.loads(line) for line in (DATA / "heads" / name).read_text(encoding="utf-8").splitlines()]


def pair_args(row):
    return ["--pair", row["pair"]] if row.get("pair") is not None else []


class Heads(Case):
    def changed(self, name, config):
        """The model's folder, with members of its config.json changed."""
        if not config:
            return model(name)
        folder = pathlib.Path(tempfile.mkdtemp(dir=self.folder))
        shutil.copytree(model(name), folder, dirs_exist_ok=True)
        path = folder / "config.json"
        path.write_text(json.dumps(json.loads(path.read_text()) | config))
        return str(folder)

    def close(self, found, wanted, names, delta=2e-6):
        self.assertEqual(len(found), len(wanted), (found, wanted))
        for a, b in zip(found, wanted):
            for name in names:
                self.assertEqual(a[name], b[name], (a, b))
            self.assertAlmostEqual(a["score"], b["score"], delta=delta)


class Texts(Heads):
    def test_classify(self):
        for row in golden("classify.jsonl"):
            (found,) = lines(bert("classify", "-m", self.changed(row["model"], row["config"]), *pair_args(row), "--", row["text"], check=0))
            self.close(found["labels"], row["labels"], ["label"], 5e-6)

    def test_top_and_raw(self):
        (all_of_them,) = lines(bert("classify", "-m", CLASSIFIER, FOX, check=0))
        (one,) = lines(bert("classify", "-m", CLASSIFIER, "--top-k", "1", FOX, check=0))
        self.assertEqual(one["labels"], all_of_them["labels"][:1])
        (raw,) = lines(bert("classify", "-m", CLASSIFIER, "--raw", FOX, check=0))
        total = sum(math.exp(x["score"]) for x in raw["labels"])
        self.close([{**x, "score": math.exp(x["score"]) / total} for x in raw["labels"]], all_of_them["labels"], ["label"])

    def test_nsp(self):
        rows = golden("nsp.jsonl")
        stdin = "".join(json.dumps({"id": i, "text": row["text"], "pair": row["pair"]}) + "\n" for i, row in enumerate(rows))
        found = lines(bert("nsp", "-m", TINY, "--jsonl", stdin=stdin, check=0))
        raw = lines(bert("nsp", "-m", TINY, "--jsonl", "--raw", stdin=stdin, check=0))
        errors = []
        for i, (x, r, row) in enumerate(zip(found, raw, rows)):
            self.assertEqual((x["id"], len(found)), (i, len(rows)))
            self.assertAlmostEqual(x["is_next"], row["is_next"], delta=2e-6)
            for ours, f32, truth in zip((r["is_next"], r["is_not_next"]), row["f32"], row["f64"]):
                errors.append((ours - truth, f32 - truth))
        ours, hf = (math.sqrt(sum(e[k] ** 2 for e in errors)) for k in (0, 1))
        self.assertLessEqual(ours, 1.1 * hf)

    def test_nsp_takes_pairs(self):
        self.refused(1, "text 1: expected a pair", "nsp", "-m", TINY, "a")
        done = bert("nsp", "-m", TINY, "--on-error", "null", stdin="a\na\tb\n", check=1)
        self.assertEqual(["error" in x for x in lines(done)], [True, False])


class Masks(Heads):
    def test_as_the_pipeline(self):
        for row in golden("fill_mask.jsonl"):
            (found,) = lines(bert("fill-mask", "-m", TINY, "--top-k", "7", row["text"], check=0))
            self.assertEqual(found["text"], row["text"])
            self.assertEqual(len(found["masks"]), len(row["masks"]))
            for mask, wanted in zip(found["masks"], row["masks"]):
                self.close(mask["top"], wanted, ["id"])

    def test_real_weights(self):
        folder = real_model("bert-base-uncased")
        wanted = json.loads((DATA / "outputs/bert-base-uncased/fill_mask.json").read_text())
        texts = list(dict.fromkeys(row["text"] for row in wanted))
        found = {(x["text"], m["position"]): m["top"]
                 for x in lines(bert("fill-mask", "-m", folder, *texts, check=0)) for m in x["masks"]}
        self.assertEqual(sorted(found), sorted((row["text"], row["position"]) for row in wanted))
        for row in wanted:
            self.close(found[row["text"], row["position"]], [{**x, "score": x["p"]} for x in row["top"]], ["id", "token"], 2e-5)

    def test_what_is_no_mask(self):
        done = bert("fill-mask", "-m", TINY, stdin="no\na [MASK]\t[MASK] b\n", check=1)
        self.assertIn("stdin: line 1: expected a [MASK] in the text, found none", done.stderr.decode())
        (found,) = lines(done)
        self.assertEqual((found["text"], found["pair"]), ("a [MASK]", "[MASK] b"))
        self.assertEqual([m["position"] for m in found["masks"]], [2, 4])
        args = ("fill-mask", "-m", TINY, "--max-length", "4", "a b c [MASK]", "[MASK] a b c")
        done = bert(*args, check=1)
        self.assertEqual(done.stderr.decode().splitlines(), [
            "bert: warning: text 1: truncated to 4 tokens, 2 were cut off",
            "bert: warning: text 2: truncated to 4 tokens, 2 were cut off",
            "bert: text 1: expected a [MASK] in the text, found none in the part that was not cut off",
            "bert: warning: 2 texts were truncated"])
        self.assertEqual([x["text"] for x in lines(done)], ["[MASK] a b c"])
        done = bert(*args, "--strict", check=1)
        self.assertEqual(done.stderr.decode().splitlines(), [f"bert: text {i}: truncated to 4 tokens, 2 were cut off" for i in (1, 2)])
        self.assertEqual(done.stdout, b"")
        (many,) = lines(bert("fill-mask", "-m", TINY, "--top-k", "9999", "[MASK]", check=0))
        self.assertEqual(sorted(x["id"] for x in many["masks"][0]["top"]), list(range(3005)))
        self.assertAlmostEqual(sum(x["score"] for x in many["masks"][0]["top"]), 1, delta=1e-5)


class Rerank(Heads):
    def test_as_cross_encoder(self):
        for row in golden("rerank.jsonl"):
            folder = self.changed("tiny-bert-reranker", row["config"])
            found = lines(bert("rerank", "-m", folder, "--", row["query"], stdin="".join(d + "\n" for d in row["documents"]), check=0))
            # Those with the same text are equal: the earlier one comes first.
            order = sorted(range(len(row["scores"])), key=lambda i: (-round(row["scores"][i], 5), i))
            self.close(found, [{"index": i, "text": row["documents"][i], "score": row["scores"][i]} for i in order],
                       ["index", "text"], 5e-6)
            self.assertEqual(lines(bert("rerank", "-m", folder, "--", row["query"], *row["documents"], check=0)), found)
            best = lines(bert("rerank", "-m", folder, "--top-k", "2", "--", row["query"], *row["documents"], check=0))
            self.assertEqual(best, found[:2])

    def test_a_default_prompt(self):
        """It stands before the query: scores of sentence-transformers 6.2 for the folder that it saved."""
        folder = pathlib.Path(self.changed("tiny-bert-reranker", {"x": 0}))
        (folder / "modules.json").write_text(json.dumps([{"idx": 0, "name": "0", "path": "", "type":
                                                          "sentence_transformers.base.modules.transformer.Transformer"}]))
        (folder / "config_sentence_transformers.json").write_text(json.dumps(
            {"model_type": "CrossEncoder", "prompts": {"query": "query: "}, "default_prompt_name": "query"}))
        ask, documents = "How old are you?", ("I am twelve years old.", "the cat lay on the rug")

        def scores(*args):
            return [x["score"] for x in lines(bert("rerank", "-m", str(folder), *args, check=0))]

        for found, wanted in zip(scores(ask, *documents), (0.45279741287231445, 0.1941223442554474), strict=True):
            self.assertAlmostEqual(found, wanted, delta=2e-6)
        for found, wanted in zip(scores("--no-prompt", ask, *documents), (0.33210381865501404, 0.16705358028411865), strict=True):
            self.assertAlmostEqual(found, wanted, delta=2e-6)
        self.assertEqual(scores("--no-prompt", "query: " + ask, *documents), scores("--prompt", "query", ask, *documents))
        self.refused(1, "no prompt poem", "rerank", "-m", str(folder), "--prompt", "poem", ask, "a")
        self.refused(2, "--no-prompt", "rerank", "-m", str(folder), "--prompt", "query", "--no-prompt", ask, "a")

    def test_many_documents(self):
        documents = [f"{i % 7} cats, {i} dogs" for i in range(700)]
        stdin = "".join(d + "\n" for d in documents)
        found = lines(bert("rerank", "-m", RERANKER, "how many", stdin=stdin, check=0))
        self.assertEqual(sorted(x["index"] for x in found), list(range(700)))
        self.assertEqual([x["score"] for x in found], sorted((x["score"] for x in found), reverse=True))
        for x in found[:5] + found[-5:]:
            self.assertEqual(x["text"], documents[x["index"]])
            self.assertEqual(lines(bert("rerank", "-m", RERANKER, "how many", x["text"], check=0))[0]["score"], x["score"])
        self.assertEqual(lines(bert("rerank", "-m", RERANKER, "--top-k", "9", "how many", stdin=stdin, check=0)), found[:9])

    def test_ids_and_bad_lines(self):
        done = bert("rerank", "-m", RERANKER, "--jsonl", "--raw", "q", check=1,
                    stdin='{"id":[1, 2],"text":"a\\tb"}\n{"text":3}\n{"text":"c","pair":"d"}\n{"text":"e"}\n')
        found = sorted(lines(done), key=lambda x: x["index"])
        self.assertEqual([(x.get("id"), x["index"], x["text"]) for x in found], [([1, 2], 0, "a\tb"), (None, 3, "e")])
        self.assertIn("line 3: expected a document, found a pair", done.stderr.decode())

    def test_refuses(self):
        self.refused(2, "needs a QUERY", "rerank", "-m", RERANKER)
        self.refused(1, "one score, this one has 3 classes", "rerank", "-m", CLASSIFIER, "a", "b")
        tanh = self.changed("tiny-bert-reranker", {"sentence_transformers": {"activation_fn": "torch.nn.modules.activation.Tanh"}})
        self.refused(1, "activation_fn", "rerank", "-m", tanh, "a", "b")
        bert("rerank", "-m", tanh, "--raw", "a", "b", check=0)


class Entities(Heads):
    def test_as_the_pipeline(self):
        for row in golden("ner.jsonl"):
            window = ["--window", str(row["window"]), "--stride", str(row["stride"])] if row["window"] else []
            (found,) = lines(bert("ner", "-m", self.changed("tiny-bert-ner", row["config"]), "--aggregation", row["aggregation"],
                                  *window, "--", row["text"], check=0))
            self.close(found["entities"], row["entities"], ["label", "start", "end", "word"])
            for x in found["entities"]:
                row["text"].encode()[x["start"]:x["end"]].decode()

    def test_windows(self):
        short = bert("ner", "-m", NER, FOX, check=0).stdout
        self.assertEqual(bert("ner", "-m", NER, "--window", "30", FOX, check=0).stdout, short)
        done = bert("ner", "-m", NER, FOX * 5, check=0)
        self.assertIn("truncated to 64 tokens", done.stderr.decode())
        windows = bert("ner", "-m", NER, "--window", "40", FOX * 5, check=0)
        self.assertEqual(windows.stderr, b"")
        self.assertGreater(lines(windows)[0]["entities"][-1]["end"], 200)
        for window, stride in ((3, 0), (4, 1), (5, 2), (6, 3), (40, 20)):
            usual = bert("ner", "-m", NER, "--window", str(window), FOX * 5, check=0).stdout
            self.assertEqual(usual, bert("ner", "-m", NER, "--window", str(window), "--stride", str(stride), FOX * 5, check=0).stdout)
        self.refused(1, "room for special tokens only", "ner", "-m", NER, "--window", "2", FOX)
        self.refused(2, "--stride needs --window", "ner", "-m", NER, "--stride", "3", "a")
        self.refused(2, "takes the place of --max-length", "ner", "-m", NER, "--window", "9", "--max-length", "9", "a")
        self.refused(2, "expected less than the window", "ner", "-m", NER, "--window", "3", "--stride", "3", "a")
        self.refused(1, "64 positions", "ner", "-m", NER, "--window", "65", "a")

    def test_single_texts_only(self):
        self.refused(1, "expected one text, found a pair", "ner", "-m", NER, "--pair", "b", "a")
        self.assertEqual(len(lines(bert("ner", "-m", NER, "--no-pair", stdin="a\tb\n", check=0))), 1)

    def test_raw_and_bytes_that_are_no_text(self):
        (raw,) = lines(bert("ner", "-m", NER, "--raw", FOX, check=0))
        (found,) = lines(bert("ner", "-m", NER, FOX, check=0))
        self.assertEqual([x["start"] for x in raw["entities"]], [x["start"] for x in found["entities"]])
        self.assertNotEqual([x["score"] for x in raw["entities"]], [x["score"] for x in found["entities"]])
        done = bert("ner", "-m", NER, "--aggregation", "first", stdin=b"the \xff\xfe fox\n", check=0)
        self.assertIn("not valid UTF-8", done.stderr.decode())


class Answers(Heads):
    def test_as_the_pipeline(self):
        for row in golden("qa.jsonl"):
            (found,) = lines(bert("qa", "-m", QA, "--window", str(row["window"]), "--stride", str(row["stride"]), "--top-k",
                                  str(row["top"]), "--max-answer-length", str(row["longest"]), *(["--null-answer"] if row["null"] else []),
                                  *pair_args(row), "--", row["text"], check=0))
            if row["top"] > 1:
                self.close(found["answers"], row["answers"], ["answer", "start", "end"])
            if row["answers"]:
                self.close([found], row["answers"][:1], ["answer", "start", "end"])
            else:
                self.assertEqual(found["answer"], "")

    def test_raw_is_the_sum_of_logits(self):
        question, context = "How old are you?", "I am twelve years old."
        args = ("qa", "-m", QA, "--top-k", "50", "--pair", context, question)
        (raw,) = lines(bert(*args, "--raw", "--null-answer", check=0))
        (found,) = lines(bert(*args, check=0))
        spans = [x for x in raw["answers"] if x["answer"]]
        self.assertEqual(len(spans), len(raw["answers"]) - 1)
        self.assertEqual([x["start"] for x in spans], [x["start"] for x in found["answers"]])
        for x in spans[1:]:
            ratio = found["answers"][spans.index(x)]["score"] / found["score"]
            self.assertAlmostEqual(math.exp(x["score"] - spans[0]["score"]), ratio, delta=1e-5)

    def test_as_many_as_there_are(self):
        """No memory is asked for what is not there: 7 tokens of context have 7·8/2 spans, of words as of letters."""
        args = ("qa", "-m", QA, "--null-answer", "--pair", "a b c d e f g", "who")
        (found,) = lines(bert(*args, "--top-k", "1000000000000", check=0))
        self.assertEqual(len(found["answers"]), 29)
        (every,) = lines(bert(*args, "--top-k", str(2 ** 63 - 1), "--max-answer-length", str(2 ** 63 - 1), check=0))
        self.assertEqual(every, found)

    def test_refuses(self):
        self.refused(1, "expected a pair", "qa", "-m", QA, "a")
        self.refused(2, "expected less than the window", "qa", "-m", QA, "--window", "9", "--stride", "9", "--pair", "b", "a")
        done = bert("qa", "-m", QA, "--window", "12", stdin=f"{FOX}\tit jumps\nwho\tthe fox\n", check=1)
        self.assertIn("stdin: line 1: ", done.stderr.decode())
        self.assertEqual(len(lines(done)), 1)


class Names(Heads):
    def test_two_biases_of_the_decoder(self):
        """Where the file has both and they differ, HF's decoder has its own (transformers 5.24)."""
        folder = pathlib.Path(self.changed("tiny-bert", {"architectures": ["BertForMaskedLM"]}))
        data = (folder / "model.safetensors").read_bytes()
        size = struct.unpack("<Q", data[:8])[0]
        header, body = json.loads(data[8:8 + size]), data[8 + size:]
        bias = header["cls.predictions.bias"]
        own = bytearray(body[slice(*bias["data_offsets"])])
        own[4 * 7:4 * 8] = struct.pack("<f", 1000)
        header["cls.predictions.decoder.bias"] = bias | {"data_offsets": [len(body), len(body) + len(own)]}
        text = json.dumps(header).encode()
        text += b" " * (-len(text) % 8)
        (folder / "model.safetensors").write_bytes(struct.pack("<Q", len(text)) + text + body + own)
        (found,) = lines(bert("fill-mask", "-m", str(folder), "a [MASK]", check=0))
        self.assertEqual(found["masks"][0]["top"][0]["id"], 7)


class All(Heads):
    COMMANDS = {"fill-mask": (TINY, "a [MASK]\n"), "nsp": (TINY, "a\tb\n"), "classify": (CLASSIFIER, "a\n"),
                "ner": (NER, "a cat\n"), "qa": (QA, "who\tthe fox\n")}

    def test_in_order_and_the_same_alone(self):
        for name, (folder, line) in self.COMMANDS.items():
            texts = [line, line.replace("a", "the quick brown a").replace("who", "who is it, and why,"), line]
            together = bert(name, "-m", folder, stdin="".join(texts), check=0).stdout
            self.assertEqual(together, b"".join(bert(name, "-m", folder, "-t", "1", stdin=t, check=0).stdout for t in texts))

    def test_what_is_cut_off_is_said(self):
        """64 of 102 tokens are left, or of 103 in a pair; answers are looked for in windows, and nothing is cut off."""
        long = "a " * 98
        for name, text, said in (("fill-mask", f"[MASK] a {long}", 38), ("nsp", f"b\t{long}a", 39), ("classify", f"a a {long}", 38),
                                 ("ner", f"a a {long}", 38), ("rerank", f"{long}a", 39), ("qa", f"who\t{long}", None)):
            folder = RERANKER if name == "rerank" else self.COMMANDS[name][0]
            args = (name, "-m", folder, *(["b"] if name == "rerank" else []))
            done = bert(*args, stdin=text + "\n", check=0)
            warned = f"stdin: line 1: truncated to 64 tokens, {said} were cut off\n"
            self.assertEqual(done.stderr.decode(), "bert: warning: " + warned if said else "")
            strict = bert(*args, "--strict", stdin=text + "\n", check=1 if said else 0)
            self.assertEqual(strict.stderr.decode(), "bert: " + warned if said else "")
            self.assertEqual(strict.stdout, b"" if said else done.stdout)

    def test_ids_and_bad_lines(self):
        for name, (folder, line) in self.COMMANDS.items():
            text, _, pair = line.rstrip("\n").partition("\t")
            good = json.dumps({"id": {"n": 1}, "text": text, **({"pair": pair} if pair else {})})
            done = bert(name, "-m", folder, "--jsonl", "--on-error", "null", stdin=f'{good}\n{{"id":2}}\n{good}\n', check=1)
            found = lines(done)
            self.assertEqual([x["id"] for x in found], [{"n": 1}, 2, {"n": 1}])
            self.assertEqual(["error" in x for x in found], [False, True, False])

    def test_models_without_the_head(self):
        missing = {"fill-mask": "cls.predictions.transform.dense.weight", "nsp": "cls.seq_relationship.weight",
                   "qa": "qa_outputs.weight", "ner": "classifier.weight", "classify": "classifier.weight", "rerank": "classifier.weight"}
        for name, tensor in missing.items():
            other = TINY if name in ("qa", "ner", "classify", "rerank") else CLASSIFIER
            self.refused(1, tensor.replace(".", "\\."), name, "-m", other, "a")
            self.refused(1, "is_decoder is true", name, "-m", model("tiny-bert-decoder"), "a")

    def test_inspect_says_which(self):
        wanted = {"tiny-bert": ["fill-mask", "nsp"], "tiny-bert-classifier": ["classify"], "tiny-bert-reranker": ["classify", "rerank"],
                  "tiny-bert-ner": ["ner"], "tiny-bert-qa": ["qa"], "tiny-bert-sharded": [], "tiny-bert-decoder": []}
        for name, heads in wanted.items():
            found = json.loads(bert("inspect", model(name), "--format", "json", check=0).stdout)
            self.assertEqual(found["heads"], heads)
            text = bert("inspect", model(name), check=0).stdout.decode()
            self.assertEqual([line for line in text.splitlines() if line.startswith("heads")],
                             ["heads       " + ", ".join(heads)] if heads else [])
            unused = {tensor["name"] for tensor in found["tensors"] if not tensor["used"]}
            self.assertEqual(unused, set(found["unused"]))
            self.assertFalse(unused & {"classifier.weight", "qa_outputs.bias", "cls.seq_relationship.weight"} if heads else set())
