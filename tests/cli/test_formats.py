"""Every format, read back: names, shapes, and the same numbers everywhere."""
import io
import json
import struct

from command import Array, Case, DATA, FOX, TINY, bert, float32, lines, model, npy, npz, safetensors

SHORT = "the cat sat"
TOKENS = 22  # of FOX


def encode(*args, stdin=b""):
    return bert("encode", "-m", TINY, *args, stdin=stdin, check=0).stdout


def flat(x):
    return [z for y in x for z in flat(y)] if isinstance(x, list) else [float32(x)]


class Encode(Case):
    def test_jsonl(self):
        (line,) = lines(bert("encode", "-m", TINY, FOX, check=0))
        self.assertEqual(list(line), ["text", "embedding", "tokens"])
        self.assertEqual((line["text"], line["tokens"], len(line["embedding"])), (FOX, TOKENS, 40))
        (line,) = lines(bert("encode", "-m", TINY, "--what", "hidden_states,pooler_output,last_hidden_state", "--layers", "0,-1", FOX, check=0))
        self.assertEqual(list(line["hidden_states"]), ["0", "3"])
        self.assertEqual(line["hidden_states"]["3"], line["last_hidden_state"])
        self.assertEqual((len(line["last_hidden_state"]), len(line["pooler_output"])), (TOKENS, 40))

    def test_every_format_has_the_same_numbers(self):
        vectors = [line["embedding"] for line in lines(bert("encode", "-m", TINY, FOX, SHORT, "", check=0))]
        wanted = flat(vectors)
        self.assertEqual(npy(encode("--format", "npy", FOX, SHORT, "")), Array((3, 40), wanted))
        self.assertEqual(encode("--format", "f32", FOX, SHORT, ""), struct.pack("<120f", *wanted))
        self.assertEqual(flat([float(x) for x in encode("--format", "text", FOX, SHORT, "").split()]), wanted)
        self.assertEqual(npz(encode("--format", "npz", FOX, SHORT, ""))["embedding"], Array((3, 40), wanted))
        self.assertEqual(safetensors(encode("--format", "safetensors", FOX, SHORT, ""))[0]["embedding"], Array((3, 40), wanted))

    def test_names_and_metadata(self):
        what = "embedding,last_hidden_state,hidden_states,pooler_output"
        tensors, metadata = safetensors(encode("--format", "safetensors", "--what", what, FOX))
        hidden = [f"hidden_states.{i}" for i in range(4)]
        self.assertEqual(set(tensors), {"input_ids", "token_type_ids", "attention_mask", "embedding", "last_hidden_state", "pooler_output", *hidden})
        self.assertEqual(tensors["input_ids"].shape, (1, TOKENS))
        self.assertEqual(tensors["attention_mask"].values, [1] * TOKENS)
        self.assertEqual(tensors["hidden_states.0"].shape, (1, TOKENS, 40))
        self.assertEqual(tensors["pooler_output"].shape, (1, 40))
        self.assertEqual(metadata["text"], FOX)
        self.assertEqual(json.loads(metadata["tokens"])[:3], ["[CLS]", "the", "quick"][:3] if "quick" in metadata["tokens"] else json.loads(metadata["tokens"])[:3])
        self.assertEqual(len(json.loads(metadata["tokens"])), TOKENS)
        self.assertRegex(metadata["weights_hash"], "^[0-9a-f]{32}$")
        self.assertRegex(metadata["numerics"], r"^\d+$")
        as_npz = npz(encode("--format", "npz", "--what", what, FOX))
        self.assertEqual(as_npz, {**tensors, **metadata})

    def test_several_texts(self):
        tensors, metadata = safetensors(encode("--format", "safetensors", "--what", "embedding,last_hidden_state", stdin=f"{FOX}\na\tb\n"))
        self.assertEqual(tensors["0.last_hidden_state"].shape, (1, TOKENS, 40))
        self.assertEqual(tensors["1.last_hidden_state"].shape, (1, 5, 40))
        self.assertEqual(tensors["1.token_type_ids"].values, [0, 0, 0, 1, 1])
        self.assertEqual(tensors["embedding"].shape, (2, 40))
        self.assertEqual((metadata["1.text"], metadata["1.pair"]), ("a", "b"))
        self.assertEqual(npz(encode("--format", "npz", "--what", "embedding,last_hidden_state", stdin=f"{FOX}\na\tb\n")), {**tensors, **metadata})

    def test_no_text(self):
        self.assertEqual(npy(encode("--format", "npy")).shape, (0, 40))
        self.assertEqual(npz(encode("--format", "npz"))["embedding"].shape, (0, 40))
        self.assertEqual(safetensors(encode("--format", "safetensors"))[0]["embedding"].shape, (0, 40))
        self.assertEqual(encode("--format", "f32"), b"")

    def test_ending_decides(self):
        for ending, read in (("npy", npy), ("npz", npz), ("safetensors", safetensors)):
            path = self.folder / f"out.{ending}"
            encode("-o", str(path), FOX)
            read(path.read_bytes())

    def test_padding(self):
        texts = (FOX, SHORT, "")
        alone = [npy(encode("--what", "last_hidden_state", "--format", "npy", text)) for text in texts]
        together = npy(encode("--what", "last_hidden_state", "--format", "npy", "--padding", "longest", *texts))
        self.assertEqual(together.shape, (3, TOKENS, 40))
        fixed = npy(encode("--what", "hidden_states", "--layers", "3", "--format", "npy", "--padding", "30", *texts))
        self.assertEqual(fixed.shape, (3, 30, 40))
        for padded in (together, fixed):
            length = padded.shape[1] * 40
            for i, one in enumerate(alone):
                row = padded.values[i * length:(i + 1) * length]
                self.assertEqual(row[:len(one.values)], one.values)
                self.assertEqual(set(row[len(one.values):]), {0.0} if len(one.values) < length else set())
        done = bert("encode", "-m", TINY, "--what", "last_hidden_state", "--format", "npy", *texts, check=1)
        self.assertIn(b"npy needs texts of equal length, found 22 and", done.stderr)
        self.assertEqual(done.stdout, b"")
        bert("encode", "-m", TINY, "--what", "last_hidden_state", "--format", "npy", "--padding", "4", FOX, check=1)

    def test_alone_and_together(self):
        texts = [" ".join([FOX, SHORT, "a b c d e", "word"][:1 + i % 4][::-1]) + f" {i}" for i in range(40)]
        for what in ("embedding", "last_hidden_state,embedding"):
            together = lines(bert("encode", "-m", TINY, "--what", what, "-t", "2", *texts, check=0))
            for text, line in list(zip(texts, together))[::7]:
                self.assertEqual(lines(bert("encode", "-m", TINY, "--what", what, "-t", "1", text, check=0)), [line])
        vectors = lines(bert("encode", "-m", TINY, *texts, check=0))
        self.assertEqual([line["embedding"] for line in vectors], [line["embedding"] for line in together])

    def test_pooling(self):
        both = lines(bert("encode", "-m", TINY, "--what", "last_hidden_state,pooler_output", FOX, check=0))[0]
        hidden = both["last_hidden_state"]
        def pooled(*args):
            vector = lines(bert("encode", "-m", TINY, *args, FOX, check=0))[0]["embedding"]
            with_others = lines(bert("encode", "-m", TINY, "--what", "embedding,last_hidden_state", *args, FOX, check=0))[0]["embedding"]
            self.assertEqual(vector, with_others)
            return vector
        self.assertEqual(pooled("--pooling", "cls"), hidden[0])
        self.assertEqual(pooled("--pooling", "lasttoken"), hidden[-1])
        self.assertEqual(pooled("--pooling", "max"), [max(column) for column in zip(*hidden)])
        self.assertEqual(pooled("--pooling", "pooler"), both["pooler_output"])
        for x, column in zip(pooled("--pooling", "mean"), zip(*hidden)):
            self.assertAlmostEqual(x, sum(column) / TOKENS, places=5)
        self.assertAlmostEqual(sum(x * x for x in pooled("--normalize")), 1, places=5)
        self.assertEqual(pooled("--dim", "7"), pooled()[:7])
        self.assertAlmostEqual(sum(x * x for x in pooled("--normalize", "--dim", "7")), 1, places=5)

    def test_safetensors_header_as_long_as_it_may_be(self):
        """It holds the texts. What is written can be read again: at most 16 MiB, or it is an error, and no file."""
        most, path = 16 << 20, self.folder / "x.safetensors"

        def write(letters, check):
            done = bert("encode", "-m", TINY, "-t", "1", "-o", str(path), stdin="a" * letters, check=check)
            with open(path, "rb") if path.exists() else io.BytesIO(bytes(8)) as f:
                return done.stderr.decode(), struct.unpack("<Q", f.read(8))[0]
        small = write(1000, 0)[1]
        fits = 1000 + most - small
        self.assertEqual(write(fits - 8, 0), ("", most - 8))
        self.assertEqual(write(fits, 0), ("", most))
        self.assertIn("attention_mask", bert("inspect", str(path), check=0).stdout.decode())
        path.unlink()
        said, length = write(fits + 8, 1)
        self.assertRegex(said, "^bert: .*x.safetensors: too many .* header of one safetensors file: use --format npz\n$")
        self.assertEqual((length, list(self.folder.iterdir())), (0, []))


class Attention(Case):
    WHAT = "weights,scores,query,key,value,context,hidden_states"

    def test_names_and_shapes(self):
        out = bert("attention", "-m", TINY, "--what", self.WHAT, "--format", "safetensors", FOX, check=0).stdout
        tensors, metadata = safetensors(out)
        for layer in range(3):
            self.assertEqual(tensors[f"attentions.{layer}"].shape, (1, 4, TOKENS, TOKENS))
            self.assertEqual(tensors[f"scores.{layer}"].shape, (1, 4, TOKENS, TOKENS))
            for name in ("query", "key", "value", "context"):
                self.assertEqual(tensors[f"{name}.{layer}"].shape, (1, 4, TOKENS, 10))
            for row in tensors[f"attentions.{layer}"].rows():
                self.assertAlmostEqual(sum(row), 1, places=5)
        self.assertEqual(tensors["hidden_states.3"].shape, (1, TOKENS, 40))
        self.assertEqual(len(tensors), 3 + 3 * 6 + 4)
        self.assertEqual(npz(bert("attention", "-m", TINY, "--what", self.WHAT, "--format", "npz", FOX, check=0).stdout), {**tensors, **metadata})

    def test_json(self):
        (line,) = lines(bert("attention", "-m", TINY, "--what", "weights,hidden_states", "--pair", "b", "a", check=0))
        self.assertEqual(line["tokens"], ["[CLS]", "a", "[SEP]", "b", "[SEP]"])
        self.assertEqual(list(line["attentions"]), ["0", "1", "2"])
        self.assertEqual((len(line["attentions"]["0"]), len(line["attentions"]["0"][0]), len(line["attentions"]["0"][0][0])), (4, 5, 5))
        self.assertEqual(line["token_type_ids"], [0, 0, 0, 1, 1])

    def test_layers_and_heads(self):
        whole = safetensors(bert("attention", "-m", TINY, "--format", "safetensors", FOX, check=0).stdout)[0]
        some, metadata = safetensors(bert("attention", "-m", TINY, "--format", "safetensors", "--layers", "-1,0", "--heads", "1,3", FOX, check=0).stdout)
        self.assertEqual(metadata["heads"], "[1,3]")
        self.assertEqual({n for n in some if n.startswith("attentions")}, {"attentions.0", "attentions.2"})
        size = TOKENS * TOKENS
        values = whole["attentions.2"].values
        self.assertEqual(some["attentions.2"], Array((1, 2, TOKENS, TOKENS), values[size:2 * size] + values[3 * size:]))

    def test_bertviz(self):
        shown = json.loads(bert("attention", "-m", TINY, "--format", "bertviz", "--pair", "b", "a", check=0).stdout)
        self.assertEqual((shown["tokens"], shown["sentence_b_start"]), (["[CLS]", "a", "[SEP]", "b", "[SEP]"], 3))
        self.assertEqual((len(shown["attention"]), len(shown["attention"][0]), len(shown["attention"][0][0][0])), (3, 4, 5))
        alone = json.loads(bert("attention", "-m", TINY, "--format", "bertviz", "a", check=0).stdout)
        self.assertIsNone(alone["sentence_b_start"])

    def test_one_text(self):
        self.assertEqual(lines(bert("attention", "-m", TINY, stdin="a\tb\n", check=0))[0]["pair"], "b")
        self.refused(1, "expected one text, found none", "attention", "-m", TINY)
        self.refused(1, "expected one text, found more", "attention", "-m", TINY, stdin="a\nb\n")


class Tokenize(Case):
    def tokenize(self, *args, stdin=b""):
        return bert("tokenize", "-m", TINY, *args, stdin=stdin, check=0).stdout.decode()

    def test_fields(self):
        line = json.loads(self.tokenize("--pair", "b", "aé"))
        self.assertEqual(list(line), ["ids", "tokens", "type_ids", "attention_mask", "special_tokens_mask", "offsets"])
        self.assertEqual(line["type_ids"][-2:], [1, 1])
        self.assertEqual(line["special_tokens_mask"][0], 1)
        self.assertEqual(line["offsets"][0], [0, 0])
        last = line["offsets"][line["tokens"].index("[SEP]") - 1]
        self.assertEqual(last[1], 3)
        chars = json.loads(self.tokenize("--offset-unit", "char", "--pair", "b", "aé"))
        self.assertEqual(chars["offsets"][line["tokens"].index("[SEP]") - 1][1], 2)

    def test_options(self):
        self.assertEqual(self.tokenize("--format", "text", "a b", "c"), "[CLS] a b [SEP]\n[CLS] c [SEP]\n")
        self.assertEqual(self.tokenize("--format", "ids", "--no-special-tokens", ""), "\n")
        self.assertEqual(self.tokenize("--format", "text", "--padding", "longest", "a b", "c"), "[CLS] a b [SEP]\n[CLS] c [SEP] [PAD]\n")
        self.assertEqual(self.tokenize("--format", "text", "--padding", "longest", "--padding-side", "left", "--pad-to-multiple", "3", "a"), "[CLS] a [SEP]\n")
        self.assertEqual(self.tokenize("--format", "text", "--padding", "5", "--padding-side", "left", "a"), "[PAD] [PAD] [CLS] a [SEP]\n")
        self.assertEqual(self.tokenize("--format", "text", "--max-length", "4", "--truncation-side", "left", "a b c"), "[CLS] b c [SEP]\n")
        self.assertNotIn("[MASK]", self.tokenize("--format", "text", "--literal-specials", "[MASK]"))
        self.assertEqual(self.tokenize("--format", "text", "[MASK]"), "[CLS] [MASK] [SEP]\n")

    def test_overflow(self):
        line = json.loads(self.tokenize("--max-length", "4", "--stride", "1", "a b c d"))
        self.assertEqual([part["tokens"][1:-1] for part in [line, *line["overflowing"]]], [["a", "b"], ["b", "c"], ["c", "d"]])
        self.assertEqual(list(line["overflowing"][0]), ["ids", "tokens", "type_ids", "attention_mask", "special_tokens_mask", "offsets"])
        self.assertEqual(json.loads(self.tokenize("--max-length", "9", "--stride", "0", "a"))["overflowing"], [])
        for shape in ("ids", "text"):  # they have no place for what is cut off
            self.refused(2, "--stride needs --format jsonl", "tokenize", "-m", TINY, "--max-length", "4", "--stride", "1", "--format", shape, "a b c d")
        bad = bert("tokenize", "-m", TINY, "--max-length", "4", "--stride", "3", stdin="a b c d\n", check=1)
        self.assertRegex(bad.stderr.decode(), "^bert: stdin: line 1: .*stride")

    def test_answers_that_leave_in_pieces(self):
        """More than is held back: with every member, also where a piece ends between two of them."""
        alone = json.loads(self.tokenize("a b"))
        for n in [20_000, *range(4_000, 4_040)]:
            line = json.loads(self.tokenize(stdin=b"a b " * n))
            self.assertEqual(list(line), list(alone))
            for name in ("ids", "tokens", "type_ids", "attention_mask", "special_tokens_mask"):
                first, *words, last = alone[name]
                self.assertEqual(line[name], [first, *words * n, last])
            self.assertEqual(line["offsets"], [[0, 0], *([i, i + 1] for i in range(0, 4 * n, 2)), [0, 0]])
        for shape in ("ids", "text"):
            first, *words, last = self.tokenize("--format", shape, "a b").split()
            self.assertEqual(self.tokenize("--format", shape, stdin=b"a b " * n + b"\nb").splitlines()[0],
                             " ".join([first, *words * n, last]))

    def test_sources(self):
        wanted = self.tokenize(FOX)
        for path in (f"{TINY}/vocab.txt", f"{TINY}/tokenizer.json"):
            self.assertEqual(bert("tokenize", "-m", path, FOX, check=0).stdout.decode(), wanted)


class Inspect(Case):
    def test_folder(self):
        seen = json.loads(bert("inspect", TINY, "--format", "json", check=0).stdout)
        self.assertEqual(list(seen), ["config", "tensors", "parameters", "missing", "unused", "heads", "assumed", "weights_hash",
                                      "warnings"])
        self.assertEqual((seen["config"]["hidden_size"], seen["config"]["num_hidden_layers"]), (40, 3))
        self.assertIn("name", seen["tensors"][0])
        self.assertEqual((seen["heads"], seen["unused"]), (["fill-mask", "nsp"], []))
        text = bert("inspect", "-m", TINY, check=0).stdout.decode()
        self.assertIn(seen["weights_hash"], text)
        other = json.loads(bert("inspect", model("tiny-bert-original-names"), "--format", "json", check=0).stdout)
        self.assertEqual(other["weights_hash"], seen["weights_hash"])
        sharded = json.loads(bert("inspect", model("tiny-bert-sharded"), "--format", "json", check=0).stdout)
        self.assertTrue(any("pooler" in name for name in sharded["missing"]))

    def test_ending_decides(self):
        for path, name in ((TINY, "parameters"), (f"{TINY}/config.json", "kind")):
            out = self.folder / "x.json"
            bert("inspect", path, "-o", str(out), check=0)
            self.assertIn(name, json.loads(out.read_text()))
            out = self.folder / "x.txt"
            bert("inspect", path, "-o", str(out), check=0)
            self.assertEqual(out.read_bytes(), bert("inspect", path, check=0).stdout)
            bert("inspect", path, "-o", str(out), "--format", "json", check=0)
            self.assertIn(name, json.loads(out.read_text()))
            self.refused(2, r"the ending \.csv: expected one of text, json$", "inspect", path, "-o", str(self.folder / "x.csv"))
        self.refused(2, "--format npz: expected one of text, json$", "inspect", TINY, "--format", "npz")

    def test_files(self):
        for name, kind in (("model.safetensors", "safetensors"), ("config.json", "config"), ("tokenizer.json", "tokenizer"), ("vocab.txt", "vocab")):
            done = bert("inspect", f"{TINY}/{name}", "--format", "json", check=0)
            self.assertEqual(json.loads(done.stdout)["kind"], kind)
        index = f"{model('tiny-bert-sharded')}/model.safetensors.index.json"
        self.assertEqual(json.loads(bert("inspect", index, "--format", "json", check=0).stdout), {"kind": "index"})
        self.refused(1, "config.json", "inspect", "--as", "safetensors", f"{TINY}/config.json")
        self.refused(1, "vocab.txt", "inspect", "--as", "config", f"{TINY}/vocab.txt")
        self.refused(2, "--as poem", "inspect", "--as", "poem", f"{TINY}/vocab.txt")
        bad = self.folder / "bad.json"
        bad.write_text('{"weight_map": {"a": "../b.safetensors"}}')
        self.refused(1, "bad.json: weight_map: expected a plain file name", "inspect", str(bad))
        self.refused(1, "expected a folder or a regular file", "inspect", "/dev/zero")
        self.refused(1, "nothing", "inspect", str(self.folder / "nothing"))


class Verify(Case):
    def test_reference(self):
        against = str(DATA / "outputs" / "tiny-bert" / "case00.safetensors")
        done = bert("verify", "-m", TINY, "--against", against, "--format", "json", check=0)
        compared = {row["name"]: row for row in json.loads(done.stdout)}
        self.assertEqual(len(compared), 4 + 3 * 6 + 1)
        for row in compared.values():
            self.assertGreater(row["count"], 0)
            self.assertLess(row["largest"], 8 * row["hf_largest"] + 1e-12)
            self.assertGreater(row["hf_rms"], 0)
        self.assertIn("HF's own", bert("verify", "-m", TINY, "--against", against, check=0).stdout.decode())
        self.assertIn(b"more than --tolerance", bert("verify", "-m", TINY, "--against", against, "--tolerance", "1e-12", check=1).stderr)
        self.assertIn(b"more than", bert("verify", "-m", model("tiny-bert-original-names"), "--against", against, "--tolerance", "0", check=1).stderr)

    def test_padded_batch(self):
        against = str(DATA / "outputs" / "tiny-bert" / "padded_batch.safetensors")
        done = bert("verify", "-m", TINY, "--against", against, "--format", "json", check=0)
        lengths = [22, 9, 0, 0]
        counts = {row["name"]: row["count"] for row in json.loads(done.stdout)}
        self.assertEqual(counts["hidden_states.0"] % 40, 0)
        self.assertGreater(counts["hidden_states.0"], 40 * sum(lengths))

    def test_our_own_files(self):
        what = "embedding,last_hidden_state,hidden_states,pooler_output"
        for texts in ((FOX,), (FOX, SHORT)):
            path = self.folder / "own.safetensors"
            encode("-o", str(path), "--what", what, *texts)
            for row in json.loads(bert("verify", "-m", TINY, "--against", str(path), "--tolerance", "0", "--format", "json", check=0).stdout):
                self.assertEqual(row["largest"], 0)
        path = self.folder / "own.npy"
        encode("-o", str(path), FOX, SHORT)
        bert("verify", "-m", TINY, "--against", str(path), "--tolerance", "0", stdin=f"{FOX}\n{SHORT}\n", check=0)
        bert("verify", "-m", TINY, "--against", str(path), "--tolerance", "0.001", stdin=f"{SHORT}\n{FOX}\n", check=1)
        encode("-o", str(path), "--what", "last_hidden_state", "--padding", "longest", FOX, SHORT)
        bert("verify", "-m", TINY, "--against", str(path), "--tolerance", "0", FOX, SHORT, check=0)

    def test_inputs_without_tokens(self):
        """Rows of no bytes: the header alone says how many."""
        header = json.dumps({"input_ids": {"dtype": "I64", "shape": [1 << 40, 0], "data_offsets": [0, 0]},
                             "embedding": {"dtype": "F32", "shape": [1, 40], "data_offsets": [0, 160]}}).encode()
        path = self.folder / "none.safetensors"
        path.write_bytes(struct.pack("<Q", len(header)) + header + bytes(160))
        self.refused(1, "embedding: nothing was compared", "verify", "-m", TINY, "--against", str(path), "-o", "/dev/null")
