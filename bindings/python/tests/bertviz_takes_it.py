"""The real bertviz takes the arrays. Needs torch and bertviz, so it is no test_*: `scripts/check python` runs it."""
import unittest

import bertviz
import torch

import libbert
from common import TINY


class Bertviz(unittest.TestCase):
    def test_views(self):
        with libbert.Model(TINY) as model:
            for text, pair in (("the quick brown fox", None), ("what can he do", "he can run")):
                found = model.run(text, pair, what=["weights"])
                attention = [torch.from_numpy(weights) for weights in found["weights"]]   # the same memory
                for view in (bertviz.head_view, bertviz.model_view):
                    html = view(attention, found["tokens"].tokens, found["tokens"].sentence_b_start, html_action="return")
                    for token in found["tokens"].tokens:
                        self.assertIn(f'"{token}"', html.data)


if __name__ == "__main__":
    unittest.main()
