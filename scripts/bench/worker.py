"""One peer in a process of its own: takes orders as JSON lines on stdin, answers each with one.

Two runtimes in one process would share, or fight over, OpenMP and allocators. The clock is here, around the pass alone.
"""
import argparse
import json
import os
import statistics
import sys
import time

import numpy as np

import inputs
from peers import PEERS


def timed(body, at_least):
    """The median of as many calls of body() as last `at_least` seconds, behind one that is not counted."""
    body()
    times, end = [], time.perf_counter() + at_least
    while not times or time.perf_counter() < end:
        start = time.perf_counter()
        body()
        times.append(time.perf_counter() - start)
    return statistics.median(times)


def pooled(hidden, lengths):
    """Mean over a text's tokens, length 1: what all-MiniLM-L6-v2 gives."""
    weights = (np.arange(hidden.shape[1])[None, :] < np.asarray(lengths)[:, None]).astype(np.float32)
    means = np.einsum("bth,bt->bh", hidden, weights) / np.asarray(lengths, np.float32)[:, None]
    return means / np.linalg.norm(means, axis=1, keepdims=True)


def embed(peer, texts, batch, by_length):
    """A vector for each list of ids, in order; `batch` texts a pass."""
    order = sorted(range(len(texts)), key=lambda i: len(texts[i])) if by_length else range(len(texts))
    vectors = None
    for i in range(0, len(texts), batch):
        chosen = list(order)[i:i + batch]
        lengths = [len(texts[k]) for k in chosen]
        ids = np.zeros((len(chosen), max(lengths)), np.int64)
        for row, k in enumerate(chosen):
            ids[row, :lengths[row]] = texts[k]
        part = pooled(peer.hidden(peer.run(peer.prepare(ids, lengths))), lengths)
        vectors = np.empty((len(texts), part.shape[1]), np.float32) if vectors is None else vectors
        vectors[chosen] = part
    return vectors


class Worker:
    def __init__(self, args):
        self.args, self.ready = args, {}
        self.peer = PEERS[args.peer](args.model, args.cache, args.threads, args.library)

    def version(self):
        return self.peer.version

    def _pass(self, batch, length):
        if (batch, length) not in self.ready:
            ids = inputs.token_ids(self.args.model, batch, length)
            self.ready[batch, length] = self.peer.prepare(ids, [length] * batch)
        return self.ready[batch, length]

    def output(self, batch, length, path):
        np.save(path, self.peer.hidden(self.peer.run(self._pass(batch, length))))

    def time(self, batch, length, at_least):
        ready = self._pass(batch, length)
        return timed(lambda: self.peer.run(ready), at_least)

    def mixed(self, n, batch, by_length, path=None):
        """Seconds for n texts of mixed length. libbert (batch 0) gets text, in order of arrival, and tokenizes it."""
        texts, ids = inputs.mixed_texts(self.args.model, n)
        start = time.perf_counter()
        vectors = embed(self.peer, ids, batch, by_length) if batch else self.peer.pipeline.embed(texts)
        seconds = time.perf_counter() - start
        if path:
            np.save(path, vectors)
        return seconds

    def texts(self, n, length):
        """libbert: seconds for n texts of `length` tokens."""
        texts = inputs.texts_of_length(self.args.model, n, length)
        return timed(lambda: self.peer.pipeline.embed(texts), 0)

    def grow(self, rounds, n, length):
        """libbert: resident bytes after each of some calls with n texts."""
        texts, sizes = inputs.texts_of_length(self.args.model, n, length), []
        for _ in range(rounds):
            self.peer.pipeline.embed(texts)
            with open("/proc/self/statm") as statm:
                sizes.append(int(statm.read().split()[1]) * os.sysconf("SC_PAGE_SIZE"))
        return sizes

    def maps(self, length, path, at_least):
        """Seconds without attention maps, and with all of them (libbert: and written to `path`)."""
        import maps
        return (maps.ours if self.args.peer == "libbert" else maps.eager)(self.peer, self.args.model, length, path,
                                                                          at_least)


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("peer", choices=PEERS)
    for name in ("--model", "--cache", "--library"):
        parser.add_argument(name, required=True)
    parser.add_argument("--threads", type=int, required=True)
    args = parser.parse_args()
    answers = os.fdopen(os.dup(1), "w")
    os.dup2(2, 1)   # what the runtimes print does not end up among the answers
    worker = Worker(args)
    print(json.dumps(worker.version()), file=answers, flush=True)
    for line in sys.stdin:
        order = json.loads(line)
        print(json.dumps(getattr(worker, order.pop("do"))(**order)), file=answers, flush=True)


if __name__ == "__main__":
    main()
