#!/usr/bin/env python3
"""Goldens of bert/study.h: make_study_goldens.py MODEL_FOLDER OUT.safetensors

Everything in float64 from the checkpoint's tensors, written as the papers write it and sharing nothing with the C code:
sums over pairs of tokens, vector by vector. Needs numpy and safetensors.
"""
import json
import math
import pathlib
import sys

import numpy as np
from safetensors.numpy import load_file, save_file

TEXTS = {
    "single": ([2, 1103, 17, 845, 2044, 17, 999, 3], None),
    "pair": ([2, 500, 61, 2900, 3, 77, 61, 1234, 18, 3], [0, 0, 0, 0, 0, 1, 1, 1, 1, 1]),
}


def layer_norm(x, gamma, beta, eps):
    return (x - x.mean(-1, keepdims=True)) / np.sqrt(x.var(-1, keepdims=True) + eps) * gamma + beta


def gelu(x):
    return x * 0.5 * (1 + np.vectorize(math.erf)(x / math.sqrt(2)))


def linear(w, name, x):
    return x @ w[name + ".weight"].T + w[name + ".bias"]


def study(w, config, ids, types):
    heads, layers, eps = config["num_attention_heads"], config["num_hidden_layers"], config["layer_norm_eps"]
    tokens, size = len(ids), config["hidden_size"] // heads
    e = "embeddings."
    x = (w[e + "word_embeddings.weight"][ids] + w[e + "token_type_embeddings.weight"][types or [0] * tokens] +
         w[e + "position_embeddings.weight"][:tokens])
    x = layer_norm(x, w[e + "LayerNorm.weight"], w[e + "LayerNorm.bias"], eps)
    rollout, out = np.eye(tokens), {"norms": [], "block_norms": [], "distance": [], "entropy": []}
    apart = np.abs(np.arange(tokens)[:, None] - np.arange(tokens))
    for layer in range(layers):
        p = f"encoder.layer.{layer}."
        q, k, v = (linear(w, f"{p}attention.self.{name}", x).reshape(tokens, heads, size).transpose(1, 0, 2)
                   for name in ("query", "key", "value"))
        scores = q @ k.transpose(0, 2, 1) / math.sqrt(size)
        alpha = np.exp(scores - scores.max(-1, keepdims=True))
        alpha /= alpha.sum(-1, keepdims=True)
        w_o = w[p + "attention.output.dense.weight"].T.reshape(heads, size, -1)
        f = np.einsum("atd,adh->ath", v, w_o)
        total = x + np.einsum("aij,ajh->ih", alpha, f) + w[p + "attention.output.dense.bias"]
        gamma, beta = w[p + "attention.output.LayerNorm.weight"], w[p + "attention.output.LayerNorm.bias"]
        a = alpha.mean(0) + np.eye(tokens)
        rollout = (a / a.sum(-1, keepdims=True)) @ rollout
        out["norms"].append(np.linalg.norm(alpha[..., None] * f[:, None], axis=-1))
        given = np.einsum("aij,ajh->ijh", alpha, f)
        given[np.arange(tokens), np.arange(tokens)] += x
        given = (given - given.mean(-1, keepdims=True)) / np.sqrt(total.var(-1) + eps)[:, None, None] * gamma
        out["block_norms"].append(np.linalg.norm(given, axis=-1))
        out["distance"].append((alpha * apart).sum(-1).mean(-1))
        out["entropy"].append(-(alpha * np.log(alpha)).sum(-1).mean(-1))
        middle = layer_norm(total, gamma, beta, eps)
        inner = linear(w, p + "output.dense", gelu(linear(w, p + "intermediate.dense", middle)))
        x = layer_norm(middle + inner, w[p + "output.LayerNorm.weight"], w[p + "output.LayerNorm.bias"], eps)
    return {"rollout": rollout, **{name: np.stack(parts) for name, parts in out.items()}}


def main():
    folder = pathlib.Path(sys.argv[1])
    config = json.loads((folder / "config.json").read_text())
    w = {name.removeprefix("bert."): x.astype(np.float64)
         for name, x in load_file(folder / "model.safetensors").items()}
    tensors = {}
    for text, (ids, types) in TEXTS.items():
        tensors[f"{text}.ids"] = np.array(ids)
        tensors[f"{text}.types"] = np.array(types or [0] * len(ids))
        tensors |= {f"{text}.{name}": np.ascontiguousarray(x) for name, x in study(w, config, ids, types).items()}
    save_file(tensors, sys.argv[2])


if __name__ == "__main__":
    main()
