"""Decoders: only attention and verify run them, over a memory that a npy file gives."""
import json

from command import DATA, TINY, Case, bert, model, npz, safetensors, write_npy

DECODER = model("tiny-bert-decoder")
REFERENCE = DATA / "outputs" / "tiny-bert-decoder" / "case00.safetensors"
TEXT = "the cat sat on the mat"
HIDDEN = 40


class Decoder(Case):
    def setUp(self):
        super().setUp()
        self.truth = safetensors(REFERENCE.read_bytes())[0]
        self.seen = sum(self.truth["encoder_attention_mask"].values)
        self.states = self.truth["encoder_hidden_states"].values[:self.seen * HIDDEN]
        self.memory = write_npy(self.folder / "memory.npy", (self.seen, HIDDEN), self.states)

    def attention(self, *args):
        return bert("attention", "-m", DECODER, *args, TEXT, check=0).stdout

    def near(self, found, truth, largest):
        self.assertEqual(len(found), len(truth))
        self.assertLess(max(abs(a - b) for a, b in zip(found, truth)), largest)

    def test_the_reference(self):
        found, _ = safetensors(self.attention("--memory", self.memory, "--what", "weights,hidden_states", "--format", "safetensors"))
        for layer in range(3):
            self.near(found[f"attentions.{layer}"].values, self.truth[f"f64.attentions.{layer}"].values, 2e-5)
            self.near(found[f"hidden_states.{layer + 1}"].values, self.truth[f"f64.hidden_states.{layer + 1}"].values, 1e-4)
            cross, truth = found[f"cross_attentions.{layer}"], self.truth[f"f64.cross_attentions.{layer}"]
            self.assertEqual(cross.shape, (1, 4, truth.shape[2], self.seen))
            self.near(cross.values, [x for row in truth.rows() for x in row[:self.seen]], 2e-5)

    def test_layers_heads_and_formats(self):
        whole, _ = safetensors(self.attention("--memory", self.memory, "--format", "safetensors"))
        some = npz(self.attention("--memory", self.memory, "--format", "npz", "--layers", "1", "--heads", "2"))
        self.assertEqual({n for n in some if "attentions" in n}, {"attentions.1", "cross_attentions.1"})
        size = len(whole["cross_attentions.1"].values) // 4
        self.assertEqual(some["cross_attentions.1"].values, whole["cross_attentions.1"].values[2 * size:3 * size])
        line = json.loads(self.attention("--memory", self.memory, "--format", "json"))
        self.assertEqual(len(line["cross_attentions"]["0"][0][0]), self.seen)
        shown = json.loads(self.attention("--memory", self.memory, "--format", "bertviz"))
        self.assertEqual(len(shown["attention"]), 3)

    def test_doubles_and_hugging_faces_shape(self):
        wide = write_npy(self.folder / "wide.npy", (1, self.seen, HIDDEN), self.states, "d")
        self.assertEqual(self.attention("--memory", wide), self.attention("--memory", self.memory))

    def test_without_memory(self):
        found, _ = safetensors(self.attention("--format", "safetensors"))
        self.assertFalse([n for n in found if n.startswith("cross")])
        rows = found["attentions.0"].rows()
        for i, row in enumerate(rows):
            self.assertFalse(any(row[i % len(row) + 1:]))

    def test_refused(self):
        self.refused(1, "is_decoder", "encode", "-m", DECODER, "a")
        self.refused(1, "is_decoder", "encode", "-m", DECODER, "--what", "hidden_states", "a")
        self.refused(1, "no cross-attention", "attention", "-m", TINY, "--memory", self.memory, "a")
        for no_npy in (str(REFERENCE), "/dev/zero", "/dev/null"):
            self.refused(1, "not a memory", "attention", "-m", DECODER, "--memory", no_npy, "a")
        self.refused(1, "cannot open", "attention", "-m", DECODER, "--memory", "nowhere.npy", "a")
        narrow = write_npy(self.folder / "narrow.npy", (self.seen * 2, HIDDEN // 2), self.states)
        self.refused(1, "Tm, hidden_size", "attention", "-m", DECODER, "--memory", narrow, "a")
        cut = self.folder / "cut.npy"
        cut.write_bytes((self.folder / "memory.npy").read_bytes()[:-4])
        self.refused(1, "expected 640 numbers", "attention", "-m", DECODER, "--memory", str(cut), "a")

    def test_verify(self):
        (said,) = [json.loads(bert("verify", "-m", DECODER, "--against", str(REFERENCE), "--format", "json", check=0).stdout)]
        self.assertEqual({x["name"] for x in said}, {f"{name}.{layer}" for name in ("attentions", "cross_attentions") for layer in range(3)} |
                         {f"hidden_states.{layer}" for layer in range(4)})
        self.assertTrue(all(x["largest"] < 1e-4 and x["hf_largest"] < 1e-4 for x in said))
        dump = self.folder / "dump.safetensors"
        dump.write_bytes(self.attention("--memory", self.memory, "--what", "weights,scores", "--format", "safetensors"))
        same = json.loads(bert("verify", "-m", DECODER, "--memory", self.memory, "--against", str(dump), "--format", "json", check=0).stdout)
        self.assertEqual({x["largest"] for x in same}, {0})
        self.assertIn("cross_scores.2", {x["name"] for x in same})
        self.refused(1, "no memory to attend to", "verify", "-m", DECODER, "--against", str(dump))
        self.refused(1, "encoder_hidden_states has 40 columns, the model 64", "verify", "-m", model("tiny-bert-head32"), "--against", str(REFERENCE))
        narrow = write_npy(self.folder / "narrow.npy", (self.seen * 2, HIDDEN // 2), self.states)
        self.refused(1, "Tm, hidden_size", "verify", "-m", DECODER, "--memory", narrow, "--against", str(dump))

    def test_inspect(self):
        said = bert("inspect", "-m", DECODER, check=0).stdout.decode()
        only = "only `bert attention` and `bert verify` run decoders"
        self.assertIn("causal", said)
        self.assertIn(only, said)
        self.refused(1, only, "encode", "-m", DECODER, "a")
        found = json.loads(bert("inspect", "-m", DECODER, "--format", "json", check=0).stdout)
        self.assertTrue(found["config"]["is_decoder"])
        self.assertNotIn("pooling", found["assumed"])
        self.assertTrue(all(t["used"] for t in found["tensors"] if "crossattention" in t["name"]))
