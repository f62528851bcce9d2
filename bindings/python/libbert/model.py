"""A model together with its tokenizer and pooling."""
import contextlib
import ctypes as c
import os
import signal
import threading
import time
import warnings

import numpy as np

from . import _c
from ._library import BertWarning, Owned, call, library
from .tokens import Tokens, size, text_array

# As `bert attention --what` calls them: where the tap listens, the shape for one text, whether each layer has one.
# T tokens, H hidden size, A heads, D head size, F intermediate size.
SITES = {
    "hidden_states": (_c.Site.HIDDEN_STATES, "TH", True),   # layer 0: the embeddings
    "weights": (_c.Site.WEIGHTS, "ATT", True),
    "scores": (_c.Site.SCORES, "ATT", True),
    "query": (_c.Site.QUERY, "ATD", True),
    "key": (_c.Site.KEY, "ATD", True),
    "value": (_c.Site.VALUE, "ATD", True),
    "context": (_c.Site.CONTEXT, "ATD", True),
    "value_output": (_c.Site.VALUE_OUTPUT, "ATH", True),
    "head_output": (_c.Site.HEAD_OUTPUT, "ATH", True),
    "attention_output": (_c.Site.ATTENTION_OUTPUT, "TH", True),
    "attention_sum": (_c.Site.ATTENTION_SUM, "TH", True),
    "ffn_pre": (_c.Site.FFN_PRE, "TF", True),
    "ffn_post": (_c.Site.FFN_POST, "TF", True),
    "ffn_output": (_c.Site.FFN_OUTPUT, "TH", True),
    "ffn_sum": (_c.Site.FFN_SUM, "TH", True),
    "word_embeddings": (_c.Site.WORD, "TH", False),
    "position_embeddings": (_c.Site.POSITION, "TH", False),
    "type_embeddings": (_c.Site.TYPE, "TH", False),
    "pooler_output": (_c.Site.POOLER, "H", False),
}
POOLINGS = {"auto": _c.Pooling.AUTO, "cls": _c.Pooling.CLS, "mean": _c.Pooling.MEAN, "max": _c.Pooling.MAX,
            "mean_sqrt_len": _c.Pooling.MEAN_SQRT_LEN, "weightedmean": _c.Pooling.WEIGHTED_MEAN,
            "lasttoken": _c.Pooling.LAST_TOKEN, "pooler": _c.Pooling.POOLER}
A_FEW = 32   # texts that are done before anybody gets impatient


def _start(thread):
    """With signals held back: one of them could come between a thread and the knowledge that it runs."""
    before = signal.pthread_sigmask(signal.SIG_BLOCK, signal.valid_signals())
    try:
        thread.start()
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)


def _interruptible(run, work):
    """work() in a thread of its own, while this one sees to signals: Ctrl-C ends it in the middle of a pass. What work
    refers to stays until it ends, whatever becomes of this thread."""
    stop, failed, ended = c.c_int(), [], threading.Event()   # Thread.join() takes a thread for ended when interrupted
    run.stop = c.addressof(stop)

    def job(_=stop):
        try:
            work()
        except BaseException as e:
            failed.append(e)
        ended.set()

    thread = threading.Thread(target=job)
    try:
        _start(thread)
        ended.wait()
    except BaseException:   # whatever a signal's handler raises
        stop.value = 1
        if thread.ident:
            ended.wait()
        raise
    if failed:
        raise failed[0]


def _choice(what, table, name):
    if name not in table:
        raise ValueError(f"{what} {name!r}: expected one of {', '.join(table)}")
    return table[name]


def _string(text):
    """As C has it, which ends at a NUL."""
    if text is not None and "\0" in text:
        raise ValueError(f"{text!r:.80}: has a NUL")
    return None if text is None else text.encode()


def _run_options(timeout):
    deadline = 0 if timeout is None else max(1, time.monotonic_ns() + int(timeout * 1e9))
    return _c.sized(_c.RunOptions, deadline_ns=deadline)


def _shape(info, site, letters, layers, tokens):
    sizes = {"T": tokens, "H": info.hidden, "A": info.heads, "D": info.head_size, "F": info.intermediate}
    first = info.layers + (site == _c.Site.HIDDEN_STATES) if layers else 1
    return first, *(sizes[letter] for letter in letters)


class _Engine:
    """What is open. A call that is running keeps it, so that close() in another thread takes nothing away from it."""

    def __init__(self, folder, threads, strict, max_memory):
        self.pool, self.notes, self.max_memory = Owned("pool"), [], max_memory
        self.workers = None
        if threads != 1:
            call("bert_pool_open", self.pool.pointer, threads)
            self.workers = library().bert_pool_workers(self.pool.pointer)
        self.pipeline = self._open(folder, strict)
        self.model = library().bert_pipeline_model(self.pipeline.pointer)
        self.info = library().bert_model_describe(self.model)
        self.said = library().bert_pipeline_describe(self.pipeline.pointer)
        self.idle, self.process = [], os.getpid()

    def _open(self, folder, strict):
        notes = _c.Notes(None, _c.NOTE(lambda _, text, notes=self.notes: notes.append(text.decode())))
        pipeline = Owned("pipeline", self.pool, notes)
        model = _c.sized(_c.ModelOptions, notes=c.pointer(notes), workers=self.workers, strict=strict,
                         max_memory=self.max_memory)
        tokenizer = _c.sized(_c.TokenizerOptions, notes=c.pointer(notes), strict=strict)
        options = _c.sized(_c.PipelineOptions, model=c.pointer(model), tokenizer=c.pointer(tokenizer))
        call("bert_pipeline_open", pipeline.pointer, folder, options)
        return pipeline

    @contextlib.contextmanager
    def session(self):
        """One that no other thread has; what there is to say of the call is said behind it."""
        with self.lent() as session:
            yield session
        self.warn()

    @contextlib.contextmanager
    def lent(self):
        """A session; those of a parent process are of no use behind a fork."""
        if self.process != os.getpid():
            self.idle, self.process = [], os.getpid()
        try:
            session = self.idle.pop()
        except IndexError:
            session = Owned("session", self.pipeline)
            options = _c.sized(_c.SessionOptions, workers=self.workers, max_memory=self.max_memory)
            call("bert_session_open", session.pointer, self.model, options)
        try:
            yield session.pointer
        finally:
            self.idle.append(session)

    def warn(self):
        while self.notes:
            warnings.warn(self.notes.pop(0), BertWarning, stacklevel=5)


class Model:
    """A folder as Hugging Face publishes it. Any number of Python threads may use one Model at once: each call has
    scratch memory of its own, and other threads run meanwhile.

    threads     that one call uses; None: as many as this process may
    strict      files that disagree are a BertError, not a BertWarning
    max_memory  bytes for weights, and for the scratch memory of each call; 0: no limit
    """

    def __init__(self, folder, *, threads=None, strict=False, max_memory=0):
        if threads is not None and not 1 <= threads <= 1024:
            raise ValueError(f"threads {threads!r}: expected None, or a number from 1 to 1024")
        path = os.fsencode(folder)
        if b"\0" in path:
            raise ValueError("a folder's name has no NUL")
        self._opened = _Engine(path, threads or 0, bool(strict), size("max_memory", max_memory))
        self._opened.warn()

    @property
    def _engine(self):
        if (engine := self._opened) is None:
            raise ValueError("the model is closed")
        return engine

    def close(self):
        """Calls that are running in other threads end as if nothing had happened; the memory is given back then."""
        self._opened = None

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.close()

    def prepare(self):
        """Reads and packs all weights now, not in a call: before threads or forks start."""
        call("bert_model_prepare", self._engine.model)

    @property
    def info(self):
        """Of the configuration: vocab, hidden, layers, heads, head_size, intermediate, positions, types, parameters, …"""
        info = self._engine.info
        values = {name: getattr(info, name) for name, _ in info._fields_ if name not in ("activation", "isa")}
        return {name: value.decode() if isinstance(value, bytes) else value for name, value in values.items()}

    @property
    def dim(self):
        """Numbers in a vector."""
        return self._engine.said.dim

    @property
    def max_length(self):
        """Tokens that a text may have, [CLS] and [SEP] included; of a longer one the rest is cut, with a warning."""
        return self._engine.said.max_length

    def encode(self, texts, *, pooling="auto", normalize=None, dim=0, max_length=0, prompt=None, prompt_name=None,
               window=0, stride=0, timeout=None):
        """Vectors float32 [len(texts), dim] of a list of texts or pairs (a, b); [dim] of one str.

        pooling     auto (the folder's, else mean), cls, mean, max, mean_sqrt_len, weightedmean, lasttoken, pooler
        normalize   to length 1; None: as the folder says
        dim         keep that many numbers; 0: all
        max_length  tokens; 0: the model's own
        prompt      put before each text; or prompt_name, one of the folder's; neither: the folder's default
        window      longer texts are not cut, but read in windows of so many tokens that share `stride` with the next
        timeout     seconds until it is BertError DEADLINE; None: any time
        """
        engine, run = self._engine, _run_options(timeout)
        options = _c.sized(_c.EmbedOptions, pooling=_choice("pooling", POOLINGS, pooling),
                           normalize=-1 if normalize is None else bool(normalize), dim=size("dim", dim),
                           max_length=size("max_length", max_length), run=c.pointer(run),
                           prompt=_string(prompt), prompt_name=_string(prompt_name),
                           window=size("window", window), stride=size("stride", stride))
        every = [texts] if isinstance(texts, str) else list(texts)
        vectors = np.empty((len(every), library().bert_pipeline_dim(engine.pipeline.pointer, options)), np.float32)
        array, infos = text_array(every), (_c.EmbedInfo * len(every))()
        main = threading.current_thread() is threading.main_thread()   # the only one that sees signals

        def work():
            with engine.lent() as session:
                call("bert_embed", session, engine.pipeline.pointer, vectors.ctypes.data, array, len(every), options,
                     infos)

        if main and len(every) > A_FEW:
            _interruptible(run, work)
        else:
            work()
        engine.warn()
        if cut := sum(info.truncated > 0 for info in infos):
            warnings.warn(f"{cut} of {len(every)} texts were cut to {max_length or engine.said.max_length} tokens",
                          BertWarning, stacklevel=2)
        return vectors[0] if isinstance(texts, str) else vectors

    def tokenize(self, text, pair=None, *, max_length=0, literal_specials=False):
        """Tokens. max_length 0: nothing is cut; literal_specials: "[MASK]" in the text is plain text."""
        return Tokens(self._engine.pipeline, text, pair, max_length, literal_specials)

    def run(self, text, pair=None, what=("hidden_states",), *, max_length=0, timeout=None):
        """Everything that is asked for, in one pass: {"tokens": Tokens, name: …}, where `what` has names of SITES, or is
        one. What each layer has is a list of arrays [1, …], one a layer, in one piece of memory; the rest is an array
        [1, …]."""
        return self._run(text, pair, what, max_length, timeout)

    def _run(self, text, pair, what, max_length, timeout=None):
        names = [what] if isinstance(what, str) else what
        engine, wanted = self._engine, [(name, *_choice("what", SITES, name)) for name in names]
        tokens = Tokens(engine.pipeline, text, pair, max_length or engine.said.max_length)
        if tokens.truncated:
            warnings.warn(f"the text was cut to {len(tokens)} tokens, {tokens.truncated} are left out", BertWarning,
                          stacklevel=3)
        found = {name: np.empty(_shape(engine.info, *where, len(tokens)), np.float32) for name, *where in wanted}
        taps = (_c.Tap * len(found))(*(_c.sized(_c.Tap, site=site, layer=-1, head=-1, dst=found[name].ctypes.data,
                                                dst_len=found[name].size) for name, site, *_ in wanted))
        start = np.array([0, len(tokens)], np.uintp)
        batch = _c.sized(_c.Batch, n=1, start=start.ctypes.data, ids=tokens.ids.ctypes.data,
                         types=tokens.type_ids.ctypes.data)
        with engine.session() as session:
            call("bert_run", session, batch, taps, len(taps), _run_options(timeout))
        return {"tokens": tokens, **{name: list(found[name][:, None]) if layers else found[name]
                                     for name, _, _, layers in wanted}}

    def attention(self, text, pair=None, *, max_length=0):
        """Weights of each layer, float32 [1, heads, T, T]: what bertviz takes. `run` gives the tokens with them."""
        return self._run(text, pair, ["weights"], max_length)["weights"]

    def hidden_states(self, text, pair=None, *, max_length=0):
        """Float32 [1, T, H] of the embeddings, then of each layer."""
        return self._run(text, pair, ["hidden_states"], max_length)["hidden_states"]
