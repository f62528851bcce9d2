"""bert verify: nothing of a file is passed over in silence, and no NaN passes."""
import json
import math
import struct

from command import DATA, FOX, TINY, Case, bert, npy, safetensors, write_npy

SHORT = "the quick dog"
NAN, INFINITY = math.nan, math.inf


def verify(path, *texts, check=0, model=TINY):
    return bert("verify", "-m", model, "--against", str(path), *texts, check=check)


def rows(path, *texts, check=0):
    return {row["name"]: row for row in json.loads(verify(path, "--format", "json", *texts, check=check).stdout)}


class Values(Case):
    def setUp(self):
        super().setUp()
        self.path = self.folder / "x.npy"
        bert("encode", "-m", TINY, "-o", str(self.path), SHORT, check=0)
        self.shape, self.values = npy(self.path.read_bytes()).shape, npy(self.path.read_bytes()).values

    def changed(self, changes):
        write_npy(self.path, self.shape, [changes.get(i, x) for i, x in enumerate(self.values)])
        return self.path

    def test_what_is_not_finite_is_infinitely_far(self):
        for changes in ({5: NAN}, {0: INFINITY}, {39: -INFINITY}, {i: NAN for i in range(40)}, {0: NAN, 1: INFINITY}):
            for tolerance in ((), ("--tolerance", "1e300")):
                done = verify(self.changed(changes), SHORT, *tolerance, check=1)
                self.assertIn(f"embedding differs: {len(changes)} values are NaN or infinite", done.stderr.decode())
                self.assertIn(f"  and {len(changes)} NaN or infinite\n", done.stdout.decode())
            self.assertEqual(rows(self.path, SHORT, check=1)["embedding"],
                             {"name": "embedding", "count": 40, "rms": 0, "largest": 0, "not_finite": len(changes)})

    def test_the_other_differences_stay(self):
        for at in range(3):
            places = [0, 1, 2]
            places.remove(at)
            found = rows(self.changed({at: NAN, places[0]: self.values[places[0]] + 3, places[1]: self.values[places[1]] + 4}), SHORT, check=1)
            self.assertAlmostEqual(found["embedding"]["largest"], 4, places=5)
            self.assertAlmostEqual(found["embedding"]["rms"], math.sqrt(25 / 39), places=5)

    def test_rows_and_texts(self):
        many = (SHORT, FOX, "")
        bert("encode", "-m", TINY, "-o", str(self.path), *many, check=0)
        verify(self.path, *many)
        for some in (many[:1], many[:2]):
            said = f"embedding: 3 rows, but only {len(some)} text{'s' if some[1:] else ''}\n"
            self.assertIn(said, verify(self.path, *some, check=1).stderr.decode())
        self.assertIn("embedding: 3 rows, but there are more texts", verify(self.path, *many, "a", check=1).stderr.decode())
        path = self.folder / "x.safetensors"
        bert("encode", "-m", TINY, "-o", str(path), *many, check=0)
        self.assertIn("embedding: 3 rows, but only 2 texts", verify(path, *many[:2], check=1).stderr.decode())
        bert("encode", "-m", TINY, "--what", "last_hidden_state", "--padding", "longest", "-o", str(self.path), *many, check=0)
        self.assertIn("last_hidden_state: 3 rows, but only 1 text\n", verify(self.path, SHORT, check=1).stderr.decode())
        verify(self.path, *many)


def write_safetensors(path, tensors, **metadata):
    """`tensors`: name to shape and the bytes of its float32 values."""
    header, body = {"__metadata__": metadata}, b""
    for name, (shape, data) in tensors.items():
        header[name] = {"dtype": "F32", "shape": shape, "data_offsets": [len(body), len(body) + len(data)]}
        body += data
    text = json.dumps(header).encode()
    text += b" " * (-len(text) % 8)
    path.write_bytes(struct.pack("<Q", len(text)) + text + body)
    return path


class Prompts(Case):
    """Vectors of sentence-transformers, with each prompt, and our own files of them."""

    def golden(self, name):
        self.folder_of = str(DATA / "pipelines" / "sentence" / name)
        found = json.loads((DATA / "pipelines" / "sentence" / name / "golden.json").read_text(encoding="utf-8"))
        return found["texts"][:4], {run["prompt"]: run["vectors"][:4] for run in found["runs"] if not run.get("dim")}

    def verify(self, path, *args, check=0):
        bert("verify", "-m", self.folder_of, "--tolerance", "4e-6", "--against", str(path), *args, check=check)

    def test_vectors_of_sentence_transformers(self):
        for name in ("prompts", "prompts-left-out"):
            texts, runs = self.golden(name)
            for prompt, vectors in runs.items():
                path = write_npy(self.folder / "x.npy", (len(vectors), len(vectors[0])), [x for v in vectors for x in v])
                options = {None: (), "none": ("--no-prompt",)}.get(prompt, ("--prompt", prompt))
                with self.subTest(name, prompt=prompt):
                    self.verify(path, *options, "--", *texts)
                    self.verify(path, "--", *texts, check=int(vectors != runs[None]))

    def test_our_own_files(self):
        """Whose input_ids begin with the prompt that they name; also where its tokens are not pooled."""
        for name in ("prompts", "prompts-left-out"):
            texts = self.golden(name)[0][:2]
            for options in ((), ("--prompt", "passage"), ("--prompt", "query"), ("--no-prompt",)):
                for ending in ("safetensors", "npy"):
                    path = self.folder / f"x.{ending}"
                    bert("encode", "-m", self.folder_of, "-o", str(path), *options, *texts, check=0)
                    again = bert("verify", "-m", self.folder_of, "--tolerance", "0", "--against", str(path), *options, *texts, check=0)
                    self.assertIn(b"embedding", again.stdout)
                    if ending == "safetensors":
                        self.verify(path)
                        self.verify(path, *texts)
            bert("encode", "-m", self.folder_of, "-o", str(self.folder / "ids.safetensors"), "--ids", "-", stdin="[2,7,9,11,3]", check=0)
            self.verify(self.folder / "ids.safetensors")

    def test_files_that_never_had_a_prompt(self):
        """The folder's default is for embeddings; a file of other results has one where it says so, or an option does."""
        self.golden("prompts")
        path = self.folder / "x.safetensors"
        bert("attention", "-m", self.folder_of, "--what", "weights,rollout", "-o", str(path), SHORT, check=0)
        self.verify(path)
        self.verify(path, SHORT)
        self.verify(path, "--prompt", "query", SHORT, check=1)
        tensors = {}
        for kind, options in {"plain": ("--no-prompt",), "query": ()}.items():
            bert("encode", "-m", self.folder_of, "--what", "last_hidden_state", "-o", str(path), *options, SHORT, check=0)
            self.verify(path, SHORT)
            tensors[kind] = safetensors(path.read_bytes())[0]["last_hidden_state"]
        self.assertLess(tensors["plain"].shape[1], tensors["query"].shape[1])
        for kind, options in {"plain": (), "query": ("--prompt", "query")}.items():
            states = tensors[kind]
            bare = write_safetensors(path, {"last_hidden_state": (states.shape, struct.pack(f"<{len(states.values)}f", *states.values))})
            self.verify(bare, *options, SHORT)
            self.verify(write_npy(self.folder / "x.npy", states.shape, states.values), *options, SHORT)
        self.verify(bare, SHORT, check=1)

    def test_what_does_not_go(self):
        self.golden("prompts")
        args = ("verify", "-m", self.folder_of, "--against", "x.npy")
        self.refused(2, "--no-prompt", *args, "--prompt", "query", "--no-prompt", "x")
        path = write_npy(self.folder / "x.npy", (1, 4), [0] * 4)
        self.refused(1, "no prompt nonesuch: .*document, none, passage, query", *args[:-1], path, "--prompt", "nonesuch", "x")


class Tensors(Case):
    WHAT = "weights,scores,rollout,norms,block_norms,distance,entropy"

    def setUp(self):
        super().setUp()
        self.path = self.folder / "x.safetensors"

    def write(self, *args, what=WHAT):
        bert("attention", "-m", TINY, "--what", what, "-o", str(self.path), *args, SHORT, check=0)
        return safetensors(self.path.read_bytes())[0]

    def spoil(self, name):
        """The tensor's last value, 1 more than it was."""
        data = bytearray(self.path.read_bytes())
        (n,) = struct.unpack("<Q", data[:8])
        end = 8 + n + json.loads(data[8:8 + n])[name]["data_offsets"][1]
        data[end - 4:end] = struct.pack("<f", struct.unpack("<f", data[end - 4:end])[0] + 1)
        self.path.write_bytes(data)

    def test_studies(self):
        written = self.write()
        found = rows(self.path, "--tolerance", "0", "--strict")
        self.assertEqual({name: len(written[name].values) for name in found}, {name: row["count"] for name, row in found.items()})
        self.assertEqual(set(written) - set(found), {"input_ids", "token_type_ids", "attention_mask"})
        for name in ("rollout", "norms.0", "norms.2", "block_norms.1", "distance", "entropy"):
            self.write()
            self.spoil(name)
            found = rows(self.path, check=1)
            self.assertEqual([row["name"] for row in found.values() if row["largest"]], [name])
            self.assertAlmostEqual(found[name]["largest"], 1, places=5)

    def test_some_layers(self):
        for layers in ("1", "0,2"):
            tables = self.write("--layers", layers, "--heads", "0,3")["entropy"]
            found = rows(self.path, "--tolerance", "0")
            self.assertEqual(found["entropy"]["count"], len(tables.values))
            self.assertEqual(len(tables.values), 2 * len(layers.split(",")))
            self.assertEqual([f"norms.{layer}" in found for layer in range(3)], [str(layer) in layers for layer in range(3)])

    def test_some_heads(self):
        for heads in ("1", "0,2", "1,2,3"):
            n = len(heads.split(","))
            tokens = self.write("--heads", heads)["input_ids"].shape[1]
            found = rows(self.path, "--tolerance", "0")
            self.assertEqual((found["attentions.1"]["count"], found["norms.1"]["count"], found["entropy"]["count"]),
                             (n * tokens ** 2, n * tokens ** 2, 3 * n))
            for name in ("attentions.1", "distance"):
                self.write("--heads", heads)
                self.spoil(name)
                self.assertEqual([row["name"] for row in rows(self.path, check=1).values() if row["largest"]], [name])

    def test_heads_that_the_file_does_not_name(self):
        """Without its list the shape is not that of the model, and is named as the file has it."""
        self.write("--heads", "1", "--layers", "0", what="weights,entropy")
        data = self.path.read_bytes()
        for list_, said in ((b'"teeth":"[1]"', r"attentions\.0: its shape is \[1, 1, 8, 8\], that of one text is \[1, 4, 8, 8\]$"),
                            (b'"heads":"[4]"', r"metadata heads: found \[4\], expected ascending numbers of the model's 4$"),
                            (b'"heads":"(1)"', r"its shape is \[1, 1, 8, 8\]")):
            self.path.write_bytes(data.replace(b'"heads":"[1]"', list_))
            self.refused(1, said, "verify", "-m", TINY, "--against", str(self.path))

    def test_what_is_not_compared_is_named(self):
        self.write(what="weights,logit_lens")
        names = ", ".join(f"logit_lens{kind}.{layer}" for kind in ("", "_ids") for layer in range(4))
        self.assertEqual(verify(self.path).stderr.decode(), f"bert: warning: {self.path}: verify does not compare {names}\n")
        self.refused(1, f"x.safetensors: verify does not compare {names}", "verify", "-m", TINY, "--strict", "--against", str(self.path))
        deeper = DATA / "outputs" / "tiny-bert" / "case00.safetensors"
        self.assertEqual(verify(deeper).stderr, b"")

    def hostile(self, *names, **metadata):
        """A file with hidden states that verify compares (2 tokens, all 0) and other tensors."""
        return write_safetensors(self.path, {"hidden_states.0": ((1, 2, 40), bytes(320)), **dict.fromkeys(names, ((1,), bytes(4)))}, **metadata)

    def test_messages_stay_short(self):
        """Whatever a file calls its tensors, and however many it has."""
        path = self.hostile("x" * 1_000_000, text="")
        said = f"bert: warning: {path}: verify does not compare {'x' * 64}\n"
        self.assertEqual(verify(path, "--tolerance", "1e9").stderr.decode(), said)
        path = self.hostile(*("\n" * 1000 + str(i) for i in range(1000)), text="")
        said = self.refused(1, " and 990 more$", "verify", "-m", TINY, "--strict", "--against", str(path))
        self.assertEqual(said.count(r"\x0a" * 64), 10)
        self.assertLess(len(said), 3000)
        self.hostile(*(f"x{i}" for i in range(11)), text="")
        self.assertRegex(verify(path, "--tolerance", "1e9").stderr.decode(), r"compare( x\d+,){9} x\d+ and 1 more\n$")
        for key in ("heads", "layers"):
            self.hostile(text="", **{key: f"[{','.join(['9'] * 100_000)}]"})
            said = self.refused(1, f"metadata {key}: found \\[9,9,", "verify", "-m", TINY, "--against", str(path))
            self.assertLess(len(said), len(str(path)) + 300)

    def test_a_layer_is_a_number(self):
        """The name is printed as it stands."""
        for layer in ("\n0", " 0", "+0", "-0", ""):
            write_safetensors(self.path, {f"hidden_states.{layer}": ((1, 2, 40), bytes(320))}, text="")
            self.refused(1, "expected outputs of a model", "verify", "-m", TINY, "--against", str(self.path))

    def test_format_by_ending(self):
        self.write()
        for name, is_json in (("x.json", True), ("x.txt", False), ("x", False)):
            out = self.folder / name
            verify(self.path, "-o", str(out))
            self.assertEqual(out.read_text().startswith('[{"name":'), is_json)
        self.refused(2, r"the ending \.csv: expected one of text, json$", "verify", "-m", TINY, "--against", str(self.path), "-o",
                     str(self.folder / "x.csv"))
