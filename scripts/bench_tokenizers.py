#!/usr/bin/env python3
"""The tokenizer beside HF tokenizers and BlingFire, in one run, on the same texts, one thread.

    bench_tokenizers.py BENCH VOCAB TEXTFILE...     BENCH: the built tests/bench_tokenizer

Texts are the lines of a file. Megabytes (1e6 bytes) a CPU second: of the best of several passes, so that other work on
the machine matters little. Needs `tokenizers`; BlingFire is left out if it is not installed.
"""
import os
import re
import subprocess
import sys
import time

os.environ["TOKENIZERS_PARALLELISM"] = "false"
from tokenizers import BertWordPieceTokenizer  # noqa: E402

PASSES = 3


def best(work, texts):
    times = []
    for _ in range(PASSES):
        start = time.process_time()
        for i in range(0, len(texts), 64):
            work(texts[i:i + 64])
        times.append(time.process_time() - start)
    return sum(len(t.encode()) for t in texts) / min(times) / 1e6


def huggingface(vocab, texts):
    tokenizer = BertWordPieceTokenizer(vocab)
    return best(lambda batch: tokenizer._tokenizer.encode_batch_fast(batch), texts)


def blingfire(texts):
    try:
        import blingfire as bf
    except ImportError:
        return float("nan")
    model = bf.load_model(os.path.join(os.path.dirname(bf.__file__), "bert_base_tok.bin"))
    return best(lambda batch: [bf.text_to_ids(model, t, len(t) + 2, 100) for t in batch], texts)


def ours(bench, vocab, path, threads):
    out = subprocess.run([bench, vocab, path, str(threads)], check=True, capture_output=True, text=True).stdout
    return [float(re.search(p, out).group(1)) for p in (r"([\d.]+) MB/s CPU", r"([\d.]+) MB/s wall", r"open ([\d.]+)")]


def main():
    bench, vocab, paths = sys.argv[1], sys.argv[2], sys.argv[3:]
    for path in paths:
        texts = [t for t in open(path, encoding="utf-8", newline="\n").read().split("\n") if t]
        cpu, wall, open_ms = ours(bench, vocab, path, 1)
        two = ours(bench, vocab, path, 2)
        hf, bling = huggingface(vocab, texts), blingfire(texts)
        print(f"{os.path.basename(path)}: ours {cpu:.1f} MB/s a CPU second ({wall:.1f} by the clock; two threads "
              f"{two[0]:.1f} a CPU second each, {two[1]:.1f} by the clock), open {open_ms:.2f} ms; HF encode_batch_fast "
              f"{hf:.2f}; BlingFire {bling:.1f}; ours / HF {cpu / hf:.1f}, ours / BlingFire {cpu / bling:.1f}", flush=True)


if __name__ == "__main__":
    main()
