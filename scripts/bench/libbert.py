"""libbert through ctypes: as much of it as the benchmarks need."""
import ctypes as c
import os

import numpy as np

HIDDEN_STATES, WEIGHTS = 0, 5   # bert_site


class Error(c.Structure):
    _fields_ = [("code", c.c_int), ("text", c.c_char * 508)]


class Text(c.Structure):
    _fields_ = [("a", c.c_char_p), ("a_len", c.c_size_t), ("b", c.c_char_p), ("b_len", c.c_size_t)]


class SessionOptions(c.Structure):
    _fields_ = [("size", c.c_size_t), ("memory", c.c_void_p), ("workers", c.c_void_p), ("max_memory", c.c_size_t)]


class Batch(c.Structure):
    _fields_ = [("size", c.c_size_t), ("n", c.c_size_t), ("start", c.c_void_p), ("ids", c.c_void_p),
                ("types", c.c_void_p)]


class Tap(c.Structure):
    _fields_ = [("size", c.c_size_t), ("site", c.c_int32), ("layer", c.c_int32), ("head", c.c_int32),
                ("edit", c.c_int32), ("dst", c.c_void_p), ("dst_len", c.c_size_t), ("got", c.c_void_p),
                ("user", c.c_void_p)]


def _load(path):
    lib = c.CDLL(os.path.abspath(path))
    for name in ("bert_pipeline_model", "bert_pool_workers"):
        getattr(lib, name).restype = c.c_void_p
        getattr(lib, name).argtypes = [c.c_void_p]
    lib.bert_pipeline_dim.restype = c.c_size_t
    lib.bert_pipeline_dim.argtypes = [c.c_void_p, c.c_void_p]
    lib.bert_pool_open.argtypes = [c.c_void_p, c.c_int, c.c_void_p]
    lib.bert_pipeline_open.argtypes = [c.c_void_p, c.c_char_p, c.c_void_p, c.c_void_p]
    lib.bert_model_prepare.argtypes = [c.c_void_p] * 2
    lib.bert_session_open.argtypes = [c.c_void_p] * 4
    lib.bert_run.argtypes = [c.c_void_p, c.c_void_p, c.c_void_p, c.c_size_t, c.c_void_p, c.c_void_p]
    lib.bert_embed.argtypes = [c.c_void_p] * 4 + [c.c_size_t] + [c.c_void_p] * 3
    return lib


class Pass:
    """One call of bert_run, ready to be made: a packed batch, one tap, and where its result goes."""

    def __init__(self, ids, lengths, site, layer, dst_shape):
        self.start = np.concatenate(([0], np.cumsum(lengths))).astype(np.uint64)
        self.ids = np.concatenate([row[:n] for row, n in zip(ids, lengths)]).astype(np.int32)
        self.dst = np.empty(dst_shape, np.float32)
        self.batch = Batch(c.sizeof(Batch), len(lengths), self.start.ctypes.data, self.ids.ctypes.data, None)
        self.tap = Tap(c.sizeof(Tap), site, layer, -1, 0, self.dst.ctypes.data, self.dst.size, None, None)


class Pipeline:
    def __init__(self, library, model, threads):
        self.lib = _load(library)
        self.err = Error()
        self.pool, self.pipeline, self.session = c.c_void_p(), c.c_void_p(), c.c_void_p()
        self.options = SessionOptions(c.sizeof(SessionOptions), None, None, 0)
        if threads > 1:
            self._call("bert_pool_open", c.byref(self.pool), threads)
            self.options.workers = self.lib.bert_pool_workers(self.pool)
        self._call("bert_pipeline_open", c.byref(self.pipeline), model.encode(), None)
        self.model = self.lib.bert_pipeline_model(self.pipeline)
        self._call("bert_model_prepare", self.model)
        self._call("bert_session_open", c.byref(self.session), self.model, c.byref(self.options))
        self.dim = self.lib.bert_pipeline_dim(self.pipeline, None)

    def _call(self, name, *args):
        if getattr(self.lib, name)(*args, c.byref(self.err)):
            raise RuntimeError(f"{name}: {self.err.text.decode()}")

    def run(self, one):
        """The result of a Pass."""
        self._call("bert_run", self.session, c.byref(one.batch), c.byref(one.tap), 1, None)
        return one.dst

    def embed(self, texts):
        """One vector a text (bytes), in order."""
        array = (Text * len(texts))(*(Text(t, len(t), None, 0) for t in texts))
        vectors = np.empty((len(texts), self.dim), np.float32)
        self._call("bert_embed", self.session, self.pipeline, vectors.ctypes.data, array, len(texts), None, None)
        return vectors
