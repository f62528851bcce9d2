"""Errors, threads, forks, lifetimes, memory."""
import gc
import os
import pathlib
import pickle
import signal
import subprocess
import sys
import tempfile
import threading
import time
import unittest
import unittest.mock
import warnings

import numpy as np

import libbert
from common import FOX, MODELS, TEXTS, TINY
from libbert._library import library

LONG = ["he can run " * 60] * 600


class Errors(unittest.TestCase):
    def failed(self, status, expected, function, *arguments, **options):
        with self.assertRaisesRegex(libbert.BertError, expected) as caught:
            function(*arguments, **options)
        self.assertIs(caught.exception.code, status)
        self.assertEqual(str(pickle.loads(pickle.dumps(caught.exception))), str(caught.exception))

    def test_files(self):
        self.failed(libbert.Status.NOT_FOUND, "nowhere", libbert.Model, "nowhere")
        with tempfile.TemporaryDirectory() as folder:
            for name in os.listdir(TINY):
                os.symlink(pathlib.Path(TINY, name), pathlib.Path(folder, name))
            os.unlink(pathlib.Path(folder, "config.json"))
            pathlib.Path(folder, "config.json").write_text("{")
            self.failed(libbert.Status.BAD_FILE, r"config\.json", libbert.Model, pathlib.Path(folder))

    def test_calls(self):
        with libbert.Model(TINY, threads=1) as model, warnings.catch_warnings():
            self.failed(libbert.Status.DEADLINE, "deadline", model.encode, LONG, timeout=0)
            self.failed(libbert.Status.DEADLINE, "deadline", model.run, FOX, timeout=0)
            warnings.simplefilter("ignore", libbert.BertWarning)
            self.failed(libbert.Status.TOO_LONG, "positions", model.run, "he can run " * 30, max_length=70)
            self.failed(libbert.Status.INVALID_ARGUMENT, "max_length", model.tokenize, FOX, max_length=1)
            self.failed(libbert.Status.INVALID_ARGUMENT, "no prompt", model.encode, FOX, prompt_name="poem")
            self.failed(libbert.Status.INVALID_ARGUMENT, "stride", model.encode, FOX, window=8, stride=9)
            self.assertEqual(model.encode(FOX).shape, (model.dim,))   # it goes on after each

    def test_memory_limit(self):
        self.failed(libbert.Status.NO_MEMORY, "limit", libbert.Model, TINY, max_memory=1000)

    def test_arguments(self):
        with libbert.Model(TINY) as model:
            for wrong in (3, None, b"bytes", ("a", "b", "c"), ("a", 3)):
                self.assertRaisesRegex(TypeError, "expected a str or a pair", model.encode, [wrong])
                self.assertRaises(TypeError, model.tokenize, wrong if not isinstance(wrong, tuple) else 3)
            self.assertRaises(TypeError, model.attention, FOX, 3)
            self.assertRaises(ValueError, model.tokenize, FOX, max_length=-1)
            self.assertRaises(ValueError, model.encode, FOX, dim=1.5)
            self.assertRaisesRegex(ValueError, "one of auto, cls", model.encode, FOX, pooling="sum")
            self.assertRaisesRegex(ValueError, "one of hidden_states, weights", model.run, FOX, what=["maps"])
            self.assertRaisesRegex(ValueError, "NUL", model.encode, FOX, prompt="a\0b")
            self.assertRaises(UnicodeEncodeError, model.encode, "\ud800")
            self.assertEqual(model.tokenize("a\0b").offsets.max(), 3)
        self.assertRaises(ValueError, libbert.Model, TINY, threads=0)
        self.assertRaises(ValueError, libbert.Model, TINY + "\0x")
        for call in (model.encode, model.tokenize, model.attention):
            self.assertRaisesRegex(ValueError, "closed", call, FOX)
        model.close()

    def test_warnings(self):
        with libbert.Model(TINY) as model:
            with self.assertWarnsRegex(libbert.BertWarning, f"1 of 2 texts were cut to {model.max_length} tokens") as caught:
                model.encode(["a", "he can run " * 900])
            self.assertEqual(caught.filename, __file__)
            with self.assertWarnsRegex(libbert.BertWarning, "cut to 5 tokens"):
                model.attention(FOX, max_length=5)


class Interrupts(unittest.TestCase):
    def test_in_the_middle_of_a_call(self):
        """Ctrl-C stops the pass that runs; the model can be used again."""
        codes, embed = [], library().bert_embed

        def spied(*arguments):
            time.sleep(0.05)   # until the other thread waits
            signal.pthread_kill(threading.main_thread().ident, signal.SIGINT)
            codes.append(embed(*arguments))
            return codes[-1]

        with libbert.Model(TINY, threads=1) as model:
            expected = model.encode(FOX)
            library().bert_embed = spied
            self.addCleanup(setattr, library(), "bert_embed", embed)
            with self.assertRaises(KeyboardInterrupt):
                model.encode(LONG * 2)
            library().bert_embed = embed
            self.assertEqual(codes, [libbert.Status.STOPPED])
            self.assertTrue(np.array_equal(model.encode([FOX] * 40)[39], expected))
            with self.assertRaisesRegex(libbert.BertError, "no prompt"):   # from the other thread, too
                model.encode([FOX] * 40, prompt_name="poem")

    def test_before_anybody_waits(self):
        """The signal comes while the other thread starts."""
        start, codes, embed = threading.Thread.start, [], library().bert_embed

        def signalled(thread):
            start(thread)
            signal.pthread_kill(threading.main_thread().ident, signal.SIGINT)

        def spied(*arguments):
            time.sleep(0.05)
            codes.append(embed(*arguments))
            return codes[-1]

        with libbert.Model(TINY, threads=1) as model:
            self.addCleanup(setattr, library(), "bert_embed", embed)
            library().bert_embed = spied
            with unittest.mock.patch.object(threading.Thread, "start", signalled):
                with self.assertRaises(KeyboardInterrupt):
                    model.encode(LONG * 2)
            library().bert_embed = embed
            self.assertEqual(codes, [libbert.Status.STOPPED])
            self.assertEqual(model.encode([FOX] * 40).shape[0], 40)


class Threads(unittest.TestCase):
    def test_others_run_meanwhile(self):
        """No thread is made to let another run, so this one can see the other at work only if that lets it."""
        state = []
        with libbert.Model(TINY, threads=1) as model, warnings.catch_warnings():
            warnings.simplefilter("ignore")
            model.encode(FOX)

            def work():
                state.append("begun")
                model.encode(LONG)
                state.append("done")

            interval = sys.getswitchinterval()
            sys.setswitchinterval(1000)
            try:
                thread = threading.Thread(target=work)
                thread.start()
                while not state:
                    time.sleep(0.0001)
                seen = list(state)
                thread.join()
            finally:
                sys.setswitchinterval(interval)
        self.assertEqual(seen, ["begun"])

    def test_shared(self):
        with libbert.Model(TINY, threads=2) as model:
            vectors, maps = model.encode(TEXTS), model.attention(FOX)
            wrong = []

            def work(n):
                for _ in range(20):
                    found = model.encode(TEXTS) if n % 2 else model.attention(FOX)
                    if not np.array_equal(found, vectors if n % 2 else maps):
                        wrong.append(n)

            threads = [threading.Thread(target=work, args=(n,)) for n in range(8)]
            for thread in threads:
                thread.start()
            for thread in threads:
                thread.join()
            self.assertEqual(wrong, [])
            self.assertLessEqual(len(model._engine.idle), 8)

    def test_closed_meanwhile(self):
        model, begun, found = libbert.Model(TINY, threads=2), threading.Event(), []

        def work():
            try:
                while True:
                    found.append(model.encode(TEXTS))
                    begun.set()
            except ValueError as e:
                found.append(str(e))

        expected, thread = model.encode(TEXTS), threading.Thread(target=work)
        thread.start()
        begun.wait()
        model.close()
        thread.join()
        self.assertEqual(found.pop(), "the model is closed")
        self.assertTrue(all(np.array_equal(vectors, expected) for vectors in found))

    def test_closed_in_the_middle(self):
        """What a call says behind that is of the model that it began with."""
        embed, tokenize = library().bert_embed, library().bert_tokenize
        for name, function, ask in (("bert_embed", embed, "encode"), ("bert_tokenize", tokenize, "attention")):
            self.addCleanup(setattr, library(), name, function)
            with self.subTest(ask), libbert.Model(TINY) as model:
                setattr(library(), name, lambda *arguments: (model.close(), function(*arguments))[1])
                with self.assertWarnsRegex(libbert.BertWarning, "cut to 64 tokens"):
                    getattr(model, ask)("he can run " * 90)

    @unittest.skipUnless(hasattr(os, "fork"), "no fork here")
    def test_fork(self):
        """In a process of its own: numpy and unittest may have threads."""
        code = ("import libbert, os, sys\n"
                "model = libbert.Model(sys.argv[1], threads=3)\n"
                "before = model.encode(sys.argv[2:]).tobytes()\n"
                "child = os.fork()\n"
                "if child == 0:\n"
                "    same = model.encode(sys.argv[2:]).tobytes() == before\n"
                "    model.close()\n"
                "    os._exit(0 if same else 1)\n"
                "assert os.waitpid(child, 0)[1] == 0\n"
                "assert model.encode(sys.argv[2:]).tobytes() == before\n")
        subprocess.run([sys.executable, "-W", "ignore", "-c", code, TINY, FOX, "a", "he can run"], check=True)


class Lifetimes(unittest.TestCase):
    def closes(self, kind):
        """Counts what is closed from now on."""
        name, closed = f"bert_{kind}_close", []
        close = getattr(library(), name)
        setattr(library(), name, lambda pointer: (closed.append(kind), close(pointer)))
        self.addCleanup(setattr, library(), name, close)
        return closed

    def test_arrays_keep_their_memory(self):
        tokens_closed, pipelines_closed = self.closes("tokens"), self.closes("pipeline")
        model = libbert.Model(TINY, threads=2)
        ids, offsets = (lambda t: (t.ids, t.offsets[1:3]))(model.tokenize(FOX))
        maps = model.attention(FOX)
        tokens_closed.clear()
        expected = ids.tolist(), offsets.tolist(), maps[1].copy()
        model.close()
        del model
        gc.collect()
        self.assertEqual((tokens_closed, pipelines_closed), ([], []))
        last = maps[1]
        del maps
        junk = [np.full(10000, 7, np.int32) for _ in range(100)]   # somebody else's where it would have been
        self.assertEqual((ids.tolist(), offsets.tolist()), expected[:2])
        self.assertTrue(np.array_equal(last, expected[2]))
        self.assertFalse(ids.flags.writeable)
        del ids
        self.assertEqual(tokens_closed, [])
        del offsets, junk
        self.assertEqual((tokens_closed, pipelines_closed), (["tokens"], ["pipeline"]))

    def test_without_a_collector(self):
        """All that is opened is closed by reference counts alone."""
        closed = [self.closes(kind) for kind in ("pipeline", "session", "pool", "tokens")]
        gc.collect()
        gc.disable()
        self.addCleanup(gc.enable)
        for _ in range(3):
            with libbert.Model(TINY, threads=2) as model:
                model.encode(TEXTS)
                model.run(FOX, what=["weights"])
            with self.assertRaises(libbert.BertError):
                libbert.Model("nowhere")
        self.assertEqual([len(which) for which in closed], [6, 3, 6, 3])

    def test_reference_counts(self):
        text, pair = "he can " + "run", "what can " + "he do"
        with libbert.Model(TINY, threads=1) as model:
            def everything():
                model.encode([text, (text, pair)])
                model.run(text, pair, what=["weights", "pooler_output"])
                try:
                    model.tokenize(text, max_length=1)
                except libbert.BertError:
                    pass

            everything()
            held = [text, pair, model, None, library(), model._engine, model._engine.pipeline, np.dtype(np.float32)]
            before = [sys.getrefcount(x) for x in held]
            for _ in range(1000):
                everything()
            grown = [now - then for now, then in zip([sys.getrefcount(x) for x in held], before)]
            self.assertLess(max(grown), 100, grown)

    def test_memory(self):
        """10,000 calls take no more memory than 2,000."""
        def resident():
            return int(pathlib.Path("/proc/self/statm").read_text().split()[1]) * os.sysconf("SC_PAGESIZE")

        texts = [f"he can run {n}" for n in range(5)]
        with libbert.Model(TINY, threads=1) as model:
            for n in range(10000):
                model.encode(texts[:1 + n % 5])
                model.tokenize(texts[n % 5])
                if n % 10 == 0:
                    model.run(texts[n % 5], what=["weights"])
                    self.assertRaises(libbert.BertError, model.tokenize, FOX, max_length=1)
                if n == 2000:
                    before = resident()
            self.assertLess(resident() - before, 2 << 20)


if __name__ == "__main__":
    unittest.main()
