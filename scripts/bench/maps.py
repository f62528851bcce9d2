"""One text with all attention maps of all layers, and without."""
import json
import os
import statistics
import time

import graph
import inputs


def _alternate(without, with_maps, at_least):
    """Medians of both, called in turn."""
    times, end = ([], []), time.perf_counter() + at_least
    for body in (without, with_maps):
        body()
    while len(times[0]) < 5 or time.perf_counter() < end:
        for body, kept in zip((without, with_maps), times):
            start = time.perf_counter()
            body()
            kept.append(time.perf_counter() - start)
    return [statistics.median(kept) for kept in times]


def _header(layers, heads, length):
    size, tensors = heads * length * length * 4, {}
    for n in range(layers):
        tensors[f"attentions.{n}"] = {"dtype": "F32", "shape": [1, heads, length, length],
                                      "data_offsets": [n * size, (n + 1) * size]}
    text = json.dumps(tensors).encode()
    text += b" " * (-len(text) % 8)
    return len(text).to_bytes(8, "little") + text


def ours(peer, model, length, path, at_least):
    """Writes them as safetensors, a new file each time; no fsync."""
    config = graph.config_of(model)
    layers, heads = config["num_hidden_layers"], config["num_attention_heads"]
    ids = inputs.token_ids(model, 1, length)
    hidden = peer.prepare(ids, [length])
    every = peer.libbert.Pass(ids, [length], peer.libbert.WEIGHTS, -1, (layers, heads, length, length))
    header = _header(layers, heads, length)

    def with_maps():
        peer.pipeline.run(every)
        if os.path.exists(path):
            os.unlink(path)
        with open(path, "wb", buffering=0) as file:
            file.write(header)
            file.write(every.dst.data)

    return _alternate(lambda: peer.run(hidden), with_maps, at_least)


def eager(peer, model, length, _path, at_least):
    """Hugging Face's: as tensors in memory, not written."""
    ready = peer.prepare(inputs.token_ids(model, 1, length), [length])
    return _alternate(lambda: peer.run(ready), lambda: peer.run({**ready, "output_attentions": True}), at_least)
