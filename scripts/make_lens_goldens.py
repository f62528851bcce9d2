#!/usr/bin/env python3
"""The logit lens by Hugging Face: make_lens_goldens.py MODEL_FOLDER OUT.json TEXT

The masked-word head of transformers in float64 on the hidden states of every layer; the five most probable words of
each token. Needs torch, transformers.
"""
import json
import pathlib
import sys

import torch
from transformers import AutoTokenizer, BertForMaskedLM


def main():
    folder, out, text = sys.argv[1:]
    tokenizer = AutoTokenizer.from_pretrained(folder)
    model = BertForMaskedLM.from_pretrained(folder, attn_implementation="eager", dtype=torch.float64).eval()
    encoded = tokenizer(text, return_tensors="pt")
    with torch.no_grad():
        states = model.bert(**encoded, output_hidden_states=True).hidden_states
        top = [torch.log_softmax(model.cls(h)[0], -1).topk(5) for h in states]
    golden = {"model": pathlib.Path(folder).name, "text": text, "log_probs": [t.values.tolist() for t in top],
              "ids": [t.indices.tolist() for t in top],
              "words": [[tokenizer.convert_ids_to_tokens(row) for row in t.indices.tolist()] for t in top]}
    pathlib.Path(out).write_text(json.dumps(golden, ensure_ascii=False) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
