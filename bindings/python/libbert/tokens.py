"""Texts on their way in, and what they become."""
import ctypes as c

import numpy as np

from . import _c
from ._library import Owned, call, library


def size(name, value):
    """A whole number that C may have as size_t: ctypes would take -1 for the largest one."""
    if value != int(value) or not 0 <= value < 2**63:
        raise ValueError(f"{name} {value!r}: expected a whole number from 0")
    return int(value)


def _pair(text):
    if isinstance(text, str):
        return text, None
    if isinstance(text, (tuple, list)) and len(text) == 2 and all(isinstance(part, str) for part in text):
        return text
    raise TypeError(f"expected a str or a pair of them, found {text!r:.80}")


def text_array(texts):
    """The structures refer to the bytes, so these live as long."""
    array = (_c.Text * len(texts))()
    for into, text in zip(array, texts):
        a, b = _pair(text)
        into.a = a = a.encode()
        into.a_len = len(a)
        if b is not None:
            into.b = b = b.encode()
            into.b_len = len(b)
    return array


class _Memory:
    """Memory of the library's, as numpy wants to be told of it: the array keeps this, and this keeps the owner."""

    def __init__(self, owner, address, kind, *shape):
        self.owner = owner
        self.__array_interface__ = {"version": 3, "data": (address or 0, True), "typestr": np.dtype(kind).str,
                                    "shape": shape}


def _spelling(handle, token):
    n = c.c_size_t()
    address = library().bert_tokens_spelling(handle.pointer, 0, 0, token, n)
    return c.string_at(address, n.value).decode(errors="replace")


class Tokens:
    """One tokenized text, or pair of texts. The arrays are the library's own memory, which lives as long as one of them.

    tokens               list of str
    ids, type_ids        int32 [T]
    words                int32 [T]; number of the token's word in its text, -1 for [CLS], [SEP]
    special_tokens_mask  uint8 [T]; 1 for these
    offsets              uint32 [T, 2]; text[start:end] is what the token came from; of the second text behind the first
                         [SEP] of a pair
    byte_offsets         the same in bytes of UTF-8
    truncated, unknown   tokens that were cut; [UNK] among the ids
    sentence_b_start     where the second text begins, None without one (bertviz asks for it)
    """

    def __init__(self, pipeline, text, pair=None, max_length=0, literal_specials=False):
        handle = Owned("tokens", pipeline)
        texts = text_array([text if pair is None else (text, pair)])
        options = _c.sized(_c.TokenizeOptions, max_length=size("max_length", max_length),
                           literal_specials=literal_specials, offsets_cp=1)
        call("bert_tokenize", handle.pointer, library().bert_pipeline_tokenizer(pipeline.pointer), texts, 1, options)
        e = library().bert_tokens_at(handle.pointer, 0, 0)
        for name in ("ids", "type_ids", "words"):
            setattr(self, name, np.asarray(_Memory(handle, getattr(e, name), np.int32, e.n)))
        self.special_tokens_mask = np.asarray(_Memory(handle, e.special_tokens_mask, np.uint8, e.n))
        self.offsets = np.asarray(_Memory(handle, e.offsets_cp, np.uint32, e.n, 2))
        self.byte_offsets = np.asarray(_Memory(handle, e.offsets, np.uint32, e.n, 2))
        self.tokens = [_spelling(handle, i) for i in range(e.n)]
        self.truncated, self.unknown = e.truncated, e.unknown
        second = np.flatnonzero(self.type_ids)
        self.sentence_b_start = int(second[0]) if pair is not None and len(second) else None

    def __len__(self):
        return len(self.tokens)

    def __repr__(self):
        return f"Tokens({self.tokens!r})"
