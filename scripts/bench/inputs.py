"""What everyone is given: the same token ids, made from a seed, and texts that become such ids."""
import functools
import pathlib
from statistics import NormalDist

import numpy as np

MIXED_P95, MIXED_LONGEST = 176, 256


@functools.cache
def _vocabulary(model):
    return pathlib.Path(model, "vocab.txt").read_text(encoding="utf-8").split("\n")


@functools.cache
def _words(model):
    """(id, word) of plain words, each of which the tokenizer turns into just this id."""
    return [(i, w) for i, w in enumerate(_vocabulary(model))
            if len(w) > 1 and w.isascii() and w.isalpha() and w.islower()]


def _special(model):
    return _vocabulary(model).index("[CLS]"), _vocabulary(model).index("[SEP]")


def _draw(model, lengths, seed):
    """(text, ids) for each length, [CLS] and [SEP] counted."""
    random, words, (cls, sep) = np.random.default_rng(seed), _words(model), _special(model)
    for n in lengths:
        chosen = [words[i] for i in random.integers(0, len(words), n - 2)]
        yield " ".join(w for _, w in chosen).encode(), [cls, *(i for i, _ in chosen), sep]


def token_ids(model, batch, length):
    """[B,T]"""
    return np.array([ids for _, ids in _draw(model, [length] * batch, seed=batch * 1000 + length)], np.int64)


def texts_of_length(model, n, length):
    return [text for text, _ in _draw(model, [length] * n, seed=length)]


def mixed_lengths(n):
    """Log-normal like the lengths of sentences: mean 56 and 95th percentile 176, none above 256."""
    quantiles = (np.arange(n) + 0.5) / n
    normal = np.array([NormalDist().inv_cdf(q) for q in quantiles])
    sigma = 0.935   # of the logarithm; with the cut at 256 this gives both figures to within 1 %
    lengths = np.exp(np.log(MIXED_P95) + sigma * (normal - NormalDist().inv_cdf(0.95)))
    lengths = np.clip(np.rint(lengths), 3, MIXED_LONGEST).astype(int)
    return np.random.default_rng(7).permutation(lengths)


@functools.cache
def mixed_texts(model, n):
    """Texts in order of arrival, and their ids."""
    texts, ids = zip(*_draw(model, mixed_lengths(n), seed=11))
    return list(texts), list(ids)
