"""libbert through ctypes: as much of it as the benchmarks need."""
import ctypes as c
import os
import pathlib
import sys

import numpy as np

sys.path.append(str(pathlib.Path(__file__).resolve().parents[2] / "bindings/python/libbert"))
import _c  # noqa: E402

HIDDEN_STATES, WEIGHTS = _c.Site.HIDDEN_STATES, _c.Site.WEIGHTS


class Pass:
    """One call of bert_run, ready to be made: a packed batch, one tap, and where its result goes."""

    def __init__(self, ids, lengths, site, layer, dst_shape):
        self.start = np.concatenate(([0], np.cumsum(lengths))).astype(np.uint64)
        self.ids = np.concatenate([row[:n] for row, n in zip(ids, lengths)]).astype(np.int32)
        self.dst = np.empty(dst_shape, np.float32)
        self.batch = _c.sized(_c.Batch, n=len(lengths), start=self.start.ctypes.data, ids=self.ids.ctypes.data)
        self.tap = _c.sized(_c.Tap, site=site, layer=layer, head=-1, dst=self.dst.ctypes.data, dst_len=self.dst.size)


class Pipeline:
    def __init__(self, library, model, threads):
        self.lib = _c.load(os.path.abspath(library))
        self.err = _c.Error()
        self.pool, self.pipeline, self.session = c.c_void_p(), c.c_void_p(), c.c_void_p()
        self.options = _c.sized(_c.SessionOptions)
        if threads > 1:
            self._call("bert_pool_open", self.pool, threads)
            self.options.workers = self.lib.bert_pool_workers(self.pool)
        self._call("bert_pipeline_open", self.pipeline, model.encode(), None)
        self.model = self.lib.bert_pipeline_model(self.pipeline)
        self._call("bert_model_prepare", self.model)
        self._call("bert_session_open", self.session, self.model, self.options)
        self.dim = self.lib.bert_pipeline_dim(self.pipeline, None)

    def _call(self, name, *args):
        if getattr(self.lib, name)(*args, self.err):
            raise RuntimeError(f"{name}: {self.err.text.decode()}")

    def run(self, one):
        """The result of a Pass."""
        self._call("bert_run", self.session, one.batch, one.tap, 1, None)
        return one.dst

    def embed(self, texts):
        """One vector a text (bytes), in order."""
        array = (_c.Text * len(texts))(*(_c.Text(t, len(t), None, 0) for t in texts))
        vectors = np.empty((len(texts), self.dim), np.float32)
        self._call("bert_embed", self.session, self.pipeline, vectors.ctypes.data, array, len(texts), None, None)
        return vectors
