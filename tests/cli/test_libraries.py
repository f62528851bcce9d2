"""What we write, opened by the real numpy and safetensors. Runs where they are installed."""
import io
import unittest

from command import Case, FOX, TINY, bert

try:
    import numpy
    import safetensors.numpy
except ImportError:
    numpy = None


@unittest.skipUnless(numpy, "numpy and safetensors are not installed")
class RealLibraries(Case):
    WHAT = "embedding,last_hidden_state,hidden_states,pooler_output"

    def test_all_agree(self):
        texts = ("a\u00e9\U0001F600", FOX)
        as_npz = numpy.load(io.BytesIO(bert("encode", "-m", TINY, "--what", self.WHAT, "--format", "npz", *texts, check=0).stdout))
        tensors = safetensors.numpy.load(bert("encode", "-m", TINY, "--what", self.WHAT, "--format", "safetensors", *texts, check=0).stdout)
        self.assertEqual(tensors["0.last_hidden_state"].ndim, 3)
        self.assertEqual(str(as_npz["0.text"]), texts[0])
        for name, x in tensors.items():
            self.assertTrue(numpy.array_equal(x, as_npz[name]) and x.dtype == as_npz[name].dtype, name)
        vectors = numpy.load(io.BytesIO(bert("encode", "-m", TINY, "--format", "npy", *texts, check=0).stdout))
        self.assertTrue(numpy.array_equal(vectors, tensors["embedding"]))

    def test_attention(self):
        out = self.folder / "maps.safetensors"
        bert("attention", "-m", TINY, "--what", "weights,scores", "-o", str(out), FOX, check=0)
        with safetensors.safe_open(str(out), "numpy") as file:
            self.assertEqual(file.metadata()["text"], FOX)
            weights, scores = file.get_tensor("attentions.0"), file.get_tensor("scores.0").astype("f8")
        e = numpy.exp(scores - scores.max(-1, keepdims=True))
        self.assertLess(abs(weights - e / e.sum(-1, keepdims=True)).max(), 1e-6)
