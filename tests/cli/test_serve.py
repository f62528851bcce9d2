"""bert serve: every endpoint, what it refuses, its limits, and how it begins and ends."""
import base64
import concurrent.futures
import json
import math
import os
import resource
import shutil
import signal
import socket
import stat
import struct
import subprocess
import time
import unittest

from command import Case, DATA, FOX, TINY, bert, environment, float32, lines, model, safetensors
from serving import BUILT, Server, read_all, statuses, without_server

TEXTS = [FOX, "", "a b", "naïve café 😀", "[MASK] and [SEP]", "a\0b", "x " * 40]
LIMIT = 64  # tokens of the tiny model


def encode(*texts, args=()):
    """Vectors as the command gives them."""
    stdin = "".join(json.dumps({"text": text}) + "\n" for text in texts)
    return [line["embedding"] for line in lines(bert("encode", "-m", TINY, "--jsonl", *args, stdin=stdin, check=0))]


def floats(coded):
    data = base64.b64decode(coded, validate=True)
    return list(struct.unpack(f"<{len(data) // 4}f", data))


def bits(vectors):
    return [[float32(x) for x in vector] for vector in vectors]


class WithServer(Case):
    """Tests that share one server."""
    args = ()

    @classmethod
    def setUpClass(cls):
        cls.server = Server(*cls.args)

    @classmethod
    def tearDownClass(cls):
        cls.server.__exit__(None)


class OpenAI(WithServer):
    def embeddings(self, value, **more):
        return self.server.post("/v1/embeddings", {"input": value, "model": "any", **more})

    def test_vectors(self):
        answer = self.embeddings(TEXTS)
        self.assertEqual(answer["object"], "list")
        self.assertEqual([d["index"] for d in answer["data"]], list(range(len(TEXTS))))
        self.assertEqual({d["object"] for d in answer["data"]}, {"embedding"})
        self.assertEqual([d["embedding"] for d in answer["data"]], encode(*TEXTS))
        tokens = sum(line["tokens"] for line in lines(bert("encode", "-m", TINY, *TEXTS[:5], check=0)))
        self.assertEqual(self.embeddings(TEXTS[:5])["usage"], {"prompt_tokens": tokens, "total_tokens": tokens})
        self.assertEqual(answer["model"], "tiny-bert")

    def test_one_text(self):
        self.assertEqual(self.embeddings(FOX)["data"][0]["embedding"], encode(FOX)[0])

    def test_base64(self):
        coded = [floats(d["embedding"]) for d in self.embeddings(TEXTS, encoding_format="base64")["data"]]
        self.assertEqual(coded, bits(encode(*TEXTS)))
        self.assertEqual(self.embeddings(FOX, encoding_format="float"), self.embeddings(FOX))

    def test_dimensions(self):
        self.assertEqual([d["embedding"] for d in self.embeddings(TEXTS, dimensions=7)["data"]],
                         encode(*TEXTS, args=("--dim", "7")))
        for bad in (0, -1, 41, 1.5, "5", 2 ** 63, True):
            status, said = self.server.refused("/v1/embeddings", {"input": "a", "dimensions": bad})
            self.assertEqual(status, 422, bad)
            self.assertIn("dimensions", said)

    def test_token_ids(self):
        ids = [line["ids"] for line in lines(bert("tokenize", "-m", TINY, *TEXTS[:5], check=0))]
        self.assertEqual([d["embedding"] for d in self.embeddings(ids)["data"]], encode(*TEXTS[:5]))
        self.assertEqual(self.embeddings(ids[0])["data"][0]["embedding"], encode(FOX)[0])
        for bad in ([[]], [[1], []], [1, "a"], [["a"]], [[1, [2]]], [-1], [10 ** 6], [1.5]):
            status, said = self.server.refused("/v1/embeddings", {"input": bad})
            self.assertEqual((status, "input" in said), (422, True), (bad, said))
        self.assertEqual(self.server.refused("/v1/embeddings", {"input": [5] * (LIMIT + 1)})[0], 413)

    def test_models(self):
        status, headers, data = self.server.get("/v1/models")
        self.assertEqual((status, headers["Content-Type"]), (200, "application/json"))
        self.assertEqual([m["id"] for m in json.loads(data)["data"]], ["tiny-bert"])

    def test_errors(self):
        for value, expected in ((b"", 400), ("[]", 422), ("{}", 422), ('{"input":null}', 422), ('{"input":[]}', 422),
                                ('{"input":"a"}x', 400), ('{"input":"a","encoding_format":"hex"}', 422),
                                ('{"input":"a","truncate":1}', 422)):
            status, _, data = self.server.ask("POST", "/v1/embeddings", value)
            error = json.loads(data)["error"]
            self.assertEqual((status, error["code"], error["type"]), (expected, expected, "invalid_request_error"))


class TextEmbeddingsInference(WithServer):
    def test_embed(self):
        self.assertEqual(self.server.post("/embed", {"inputs": TEXTS}), encode(*TEXTS))
        self.assertEqual(self.server.post("/embed", {"inputs": FOX}), encode(FOX))
        self.assertEqual(self.server.post("/embed", {"inputs": TEXTS, "normalize": True}),
                         encode(*TEXTS, args=("--normalize",)))

    def test_truncation(self):
        long = " ".join(["a"] * 100)
        status, headers, data = self.server.ask("POST", "/embed", json.dumps({"inputs": [long, "b", long]}))
        self.assertEqual((status, json.loads(data)), (200, encode(long, "b", long)))
        self.assertEqual([headers[f"x-{name}"] for name in ("truncated-texts", "truncated-tokens", "compute-tokens")],
                         ["2", "76", "131"])
        left = self.server.post("/embed", {"inputs": "b " + long, "truncation_direction": "Left"})
        self.assertEqual(left, encode(" ".join(["a"] * (LIMIT - 2))))
        status, said = self.server.refused("/embed", {"inputs": ["b", long], "truncate": False})
        self.assertEqual(status, 413)
        self.assertIn("text 1", said)

    def test_tokenize(self):
        for line, tokens in zip(lines(bert("tokenize", "-m", TINY, *TEXTS[:5], check=0)),
                                self.server.post("/tokenize", {"inputs": TEXTS[:5]})):
            self.assertEqual([t["id"] for t in tokens], line["ids"])
            self.assertEqual([int(t["special"]) for t in tokens], line["special_tokens_mask"])
            self.assertEqual([[t["start"] or 0, t["stop"] or 0] for t in tokens], line["offsets"])
        inside = self.server.post("/tokenize", {"inputs": "naïve Fox", "add_special_tokens": False})[0]
        self.assertEqual("".join(t["text"] for t in inside), "naïveFox")
        long = self.server.post("/tokenize", {"inputs": "a " * 100})[0]
        self.assertEqual(len(long), 102)

    def test_tokenize_never_cuts(self):
        for more in ({}, {"truncate": False}, {"truncate": True}):
            self.assertEqual(len(self.server.post("/tokenize", {"inputs": "a " * 200, **more})[0]), 202)

    def test_info(self):
        info = json.loads(self.server.get("/info")[2])
        self.assertEqual((info["model_id"], info["max_input_length"], info["max_client_batch_size"]),
                         ("tiny-bert", LIMIT, 256))
        self.assertEqual(info["model_type"], {"embedding": {"pooling": "mean"}})
        self.assertEqual(self.server.get("/health")[0], 200)

    def test_errors(self):
        for value, expected in ((b"{", 400), ({"inputs": 5}, 422), ({"input": "a"}, 422), ({"inputs": ["a", 5]}, 422),
                                ({"inputs": "a", "normalize": "yes"}, 422), ({"inputs": "a", "prompt_name": 5}, 422),
                                ({"inputs": "a", "truncation_direction": "Up"}, 422)):
            status, said = self.server.refused("/embed", value)
            self.assertEqual(status, expected, (value, said))
        for method, path, expected in (("POST", "/nothing", 404), ("GET", "/embed", 405), ("PUT", "/embed", 405),
                                       ("POST", "/health", 405), ("PUT", "/", 405), ("GET", "/embed/", 404), ("HEAD", "/health", 200)):
            status, headers, _ = self.server.ask(method, path, "{}" if method == "POST" else None)
            self.assertEqual(status, expected, (method, path))
            self.assertEqual(headers["Allow"], {405: {"/": "GET, POST", "/embed": "POST"}.get(path, "GET")}.get(expected))


class SentenceModels(Case):
    def test_places_of_tokens_are_those_in_the_text_as_sent(self):
        """The folder's default prompt is "query: "; another is "passage is it: ", of four tokens."""
        folder = str(DATA / "pipelines" / "sentence" / "prompts")
        text = "naïve Cat"
        alone = lines(bert("tokenize", "-m", folder, text, check=0))[0]
        own = [[i, *span] for i, span, special in zip(alone["ids"], alone["offsets"], alone["special_tokens_mask"]) if not special]
        prompt = lines(bert("tokenize", "-m", folder, "--no-special-tokens", "passage is it: ", check=0))[0]["tokens"]
        with Server("-m", folder) as server:
            for name, front in ((None, []), ("none", []), ("query", ["query", ":"]), ("passage", prompt)):
                ask = {"inputs": [text, "", text], "prompt_name": name}
                for found, words in zip(server.post("/tokenize", ask), (own, [], own), strict=True):
                    self.assertEqual([[t["id"], t["start"], t["stop"]] for t in found if not t["special"]], words)
                    self.assertEqual("".join(t["text"] for t in found if not t["special"]), text.replace(" ", "") if words else "")
                    self.assertEqual([t["text"] for t in found if t["special"]], ["[CLS]", *front, "[SEP]"])
                    self.assertEqual({(t["start"], t["stop"]) for t in found if t["special"]}, {(None, None)})
            self.assertEqual(server.refused("/tokenize", {"inputs": "a", "prompt_name": "none such"})[0], 422)

    def test_vectors_of_sentence_transformers(self):
        """Prompts, Dense modules, several poolings, lower-casing: the vectors that sentence-transformers gave."""
        folder = DATA / "pipelines" / "sentence"
        names = sorted(p.name for p in folder.iterdir() if p.is_dir())
        self.assertGreater(len(names), 6)
        for name in names:
            golden = json.loads((folder / name / "golden.json").read_text(encoding="utf-8"))
            keep = [i for i, text in enumerate(golden["texts"]) if isinstance(text, str)]
            with Server("-m", str(folder / name)) as server:
                for run in golden["runs"]:
                    ask = {"inputs": [golden["texts"][i] for i in keep], "prompt_name": run.get("prompt"),
                           "dimensions": run.get("dim")}
                    for i, found in zip(keep, server.post("/embed", ask)):
                        most = max(abs(x - y) for x, y in zip(found, run["vectors"][i], strict=True))
                        self.assertLess(most, 4e-6, (name, run.get("prompt"), run.get("dim"), i))
                self.assertEqual(server.refused("/embed", {"inputs": "a", "prompt_name": "none such"})[0], 422)


class Rerank(WithServer):
    args = ("-m", model("tiny-bert-reranker"))
    DOCUMENTS = ["I am twelve years old.", "the cat lay on the rug", "", FOX, "naïve \u0000 café"]

    def test_scores_of_transformers(self):
        for case in ("case01", "case02"):
            reference, about = safetensors((DATA / "outputs" / "tiny-bert-reranker" / f"{case}.safetensors").read_bytes())
            logit = reference["f64.logits"].values[0]
            ask = {"query": about["text"], "texts": [about["pair"]]}
            self.assertAlmostEqual(self.server.post("/rerank", {**ask, "raw_scores": True})[0]["score"], logit, delta=3e-6)
            self.assertAlmostEqual(self.server.post("/rerank", ask)[0]["score"], 1 / (1 + math.exp(-logit)), delta=1e-6)

    def test_order(self):
        found = self.server.post("/rerank", {"query": "How old are you?", "texts": self.DOCUMENTS})
        self.assertEqual(sorted(f["index"] for f in found), list(range(5)))
        self.assertEqual([f["score"] for f in found], sorted((f["score"] for f in found), reverse=True))
        for f in found:
            alone = self.server.post("/rerank", {"query": "How old are you?", "texts": [self.DOCUMENTS[f["index"]]]})
            self.assertEqual(alone, [{"index": 0, "score": f["score"]}])
        with_text = self.server.post("/rerank", {"query": "How old are you?", "texts": self.DOCUMENTS, "return_text": True})
        self.assertEqual(with_text, [{**f, "text": self.DOCUMENTS[f["index"]]} for f in found])
        same = self.server.post("/rerank", {"query": "a", "texts": ["b"] * 4})
        self.assertEqual([f["index"] for f in same], [0, 1, 2, 3])

    def test_prompts(self):
        """As `bert rerank` has them: before the query."""
        folder = str(self.folder)
        shutil.copytree(model("tiny-bert-reranker"), folder, dirs_exist_ok=True)
        (self.folder / "config_sentence_transformers.json").write_text(json.dumps(
            {"prompts": {"query": "query: ", "other": "find "}, "default_prompt_name": "query"}))
        with Server("-m", folder) as server:
            ask = {"query": "How old are you?", "texts": self.DOCUMENTS}
            for more, args in (({}, ()), ({"prompt_name": "other"}, ("--prompt", "other"))):
                stdin = "".join(json.dumps({"text": text}) + "\n" for text in self.DOCUMENTS)
                wanted = lines(bert("rerank", "-m", folder, "--jsonl", *args, ask["query"], stdin=stdin, check=0))
                self.assertEqual(server.post("/rerank", {**ask, **more, "return_text": True}), wanted)
            self.assertEqual(server.refused("/rerank", {**ask, "prompt_name": "poem"})[0], 422)

    def test_order_of_equal_scores(self):
        """Logits of about 40, of which sigmoid makes 1: the order is that of the logits."""
        shutil.copytree(model("tiny-bert-reranker"), self.folder, dirs_exist_ok=True)
        weights = self.folder / "model.safetensors"
        data = bytearray(weights.read_bytes())
        behind_header = 8 + struct.unpack("<Q", data[:8])[0]
        at = behind_header + json.loads(data[8:behind_header])["classifier.bias"]["data_offsets"][0]
        data[at:at + 4] = struct.pack("<f", 40)
        weights.write_bytes(data)
        with Server("-m", str(self.folder)) as server:
            ask = {"query": "How old are you?", "texts": self.DOCUMENTS}
            logits = server.post("/rerank", {**ask, "raw_scores": True})
            self.assertEqual(len({f["score"] for f in logits}), 5)
            self.assertEqual(server.post("/rerank", ask), [{**f, "score": 1.0} for f in logits])

    def test_beside_vectors(self):
        """Both kinds of work for one model at once, which never share a pass."""
        with concurrent.futures.ThreadPoolExecutor(8) as pool:
            found = list(pool.map(lambda n: self.server.post(*(("/embed", {"inputs": FOX}), ("/rerank", {"query": "a", "texts": FOX}))[n % 2]), range(64)))
        self.assertEqual(found, found[:2] * 32)

    def test_errors(self):
        for ask in ({"texts": ["a"]}, {"query": 5, "texts": ["a"]}, {"query": "a"}, {"query": "a", "texts": []},
                    {"query": "a", "texts": [[1]]}, {"query": "a", "texts": ["a"], "raw_scores": 1},
                    {"query": "a", "texts": ["a"], "truncate": 1}, {"query": "a", "texts": ["a"], "return_text": 1},
                    {"query": "a", "texts": ["a"], "truncation_direction": "right"}):
            self.assertEqual(self.server.refused("/rerank", ask)[0], 422, ask)
        self.assertEqual(self.server.refused("/rerank", "[")[0], 400)
        self.assertEqual(self.server.post("/rerank", {"query": "a", "texts": "b", "return_text": True})[0]["text"], "b")
        long = {"query": "a", "texts": ["b " * 100], "truncate": False}
        self.assertEqual(self.server.refused("/rerank", long)[0], 413)
        with Server() as other:
            status, said = other.refused("/rerank", {"query": "a", "texts": ["a"]})
            self.assertEqual((status, "no cross-encoder" in said), (422, True))


class Attention(WithServer):
    def test_json_is_the_commands(self):
        for ask, args in (({}, ()), ({"what": ["weights", "query", "hidden_states"], "layers": [0, -1]},
                                     ("--what", "weights,query,hidden_states", "--layers", "0,-1")),
                          ({"what": "hidden_states", "layers": [3]}, ("--what", "hidden_states", "--layers", "3")),
                          ({"heads": [1]}, ("--heads", "1")),
                          ({"what": "rollout,norms,distance,entropy", "layers": "all"},
                           ("--what", "rollout,norms,distance,entropy")),
                          ({"what": "rollout,distance,entropy", "layers": [-1, 0], "heads": [2]},
                           ("--what", "rollout,distance,entropy", "--layers", "0,2", "--heads", "2"))):
            _, _, data = self.server.ask("POST", "/attention", json.dumps({"text": FOX, "pair": "a b", **ask}))
            expected = bert("attention", "-m", TINY, "--format", "json", *args, "--pair", "a b", FOX, check=0).stdout
            self.assertEqual(data, expected, ask)

    def test_safetensors_are_the_commands(self):
        _, headers, data = self.server.ask("POST", "/attention", json.dumps(
            {"inputs": FOX, "what": "scores,value,context", "format": "safetensors"}))
        file = str(self.folder / "x.safetensors")
        bert("attention", "-m", TINY, "--what", "scores,value,context", "-o", file, FOX, check=0)
        with open(file, "rb") as f:
            self.assertEqual(safetensors(data), safetensors(f.read()))
        self.assertEqual(headers["Content-Type"], "application/octet-stream")

    def test_page_is_the_commands(self):
        status, headers, data = self.server.ask("POST", "/page", json.dumps({"text": [FOX, "a b"]}))
        file = str(self.folder / "x.html")
        bert("attention", "-m", TINY, "-o", file, FOX, "a b", check=0)
        with open(file, "rb") as f:
            self.assertEqual(data, f.read())
        self.assertEqual((status, headers["Content-Type"]), (200, "text/html; charset=utf-8"))
        status, headers, data = self.server.get("/")
        self.assertEqual((status, headers["Content-Type"]), (200, "text/html; charset=utf-8"))
        self.assertTrue(data.startswith(b"<!doctype html>"))

    def test_errors(self):
        for more in ({"what": "nothing"}, {"what": "cross_weights"}, {"what": []}, {"what": ""}, {"what": [5]},
                     {"layers": [3]}, {"layers": [-4]}, {"layers": []}, {"layers": 1}, {"heads": ["a"]},
                     {"heads": [10 ** 30]}, {"format": "npz"}, {"pair": 5}, {"text": ["a", "b"]}, {"text": []}):
            self.assertEqual(self.server.refused("/attention", {"text": "a", **more})[0], 422, more)
        self.assertEqual(self.server.refused("/attention", '{"text": "a", "what": [ ]}')[0], 422)
        for ask, said in (({"what": "logit_lens"}, "what: expected names of bert attention --what, without logit_lens"),
                          ({"what": ["rollout"], "heads": [0]}, "heads: nothing of what is asked for is of single heads"),
                          ({"what": "rollout,word_embeddings", "layers": [0]}, "layers: nothing of what is asked for is of single layers")):
            status, found = self.server.refused("/attention", {"text": "a", **ask})
            self.assertEqual((status, found[:len(said)]), (422, said))

    def test_answer_limit(self):
        with Server("--max-answer", "2K") as small:
            self.assertEqual(small.refused("/attention", {"text": FOX})[0], 413)
            self.assertEqual(small.refused("/page", {"text": FOX})[0], 413)
            self.assertTrue(small.post("/attention", {"text": "a", "layers": [0], "heads": [0]}))


class Strict(WithServer):
    """What would be a warning of the command is an error."""
    args = ("--strict",)

    def test_nothing_is_cut(self):
        long = "a " * 200
        for path, ask in (("/embed", {"inputs": ["a", long]}), ("/embed", {"inputs": long, "truncate": True}),
                          ("/v1/embeddings", {"input": long}), ("/attention", {"text": long}), ("/page", {"text": long})):
            status, said = self.server.refused(path, ask)
            self.assertEqual((status, "64" in said), (413, True), (path, said))
        self.assertEqual(self.server.post("/embed", {"inputs": FOX}), encode(FOX))
        self.assertEqual(len(self.server.post("/tokenize", {"inputs": long})[0]), 202)
        self.assertIs(json.loads(self.server.get("/info")[2])["auto_truncate"], False)

    def test_bytes_that_are_no_text(self):
        """They are no JSON either, with or without --strict."""
        self.assertEqual(self.server.refused("/embed", b'{"inputs":"\xff"}')[0], 400)
        self.assertEqual(self.server.refused("/embed", b'{"inputs":"\\ud800"}')[0], 400)


class Many(Case):
    def test_parallel_connections(self):
        """64 at once, each with its own text: the bits of `bert encode`, from passes that many share."""
        texts = [" ".join(["fox", "a", "b"][: n % 3 + 1] * (n % 20 + 1)) for n in range(64)]
        expected = encode(*texts)
        with Server("--max-wait", "50") as server:
            def client(n):
                connection = server.connect()
                answers = [server.post("/v1/embeddings", {"input": texts[(n + k) % 64]}, connection=connection)
                           for k in range(8)]
                connection.close()
                return [a["data"][0]["embedding"] for a in answers]
            with concurrent.futures.ThreadPoolExecutor(64) as pool:
                found = list(pool.map(client, range(64)))
            self.assertEqual(found, [[expected[(n + k) % 64] for k in range(8)] for n in range(64)])
            self.assertEqual(server.metric('bert_requests_total{path="/v1/embeddings",status="200"}'), 512)
            self.assertLess(server.metric("bert_passes_total"), 512)

    def test_long_requests_in_parts(self):
        texts = [f"a {n}" for n in range(256)]
        with Server("--pass-tokens", "10") as server:
            self.assertEqual(server.post("/embed", {"inputs": texts}), encode(*texts))

    def test_several_models(self):
        with Server("-m", TINY, "-m", model("tiny-bert-silu") + "/") as server:
            names = [m["id"] for m in json.loads(server.get("/v1/models")[2])["data"]]
            self.assertEqual(names, ["tiny-bert", "tiny-bert-silu"])
            with concurrent.futures.ThreadPoolExecutor(8) as pool:
                answers = list(pool.map(lambda n: server.post("/embed", {"inputs": FOX, "model": names[n % 2]})[0], range(32)))
            silu = lines(bert("encode", "-m", model("tiny-bert-silu"), FOX, check=0))[0]["embedding"]
            self.assertEqual(answers, [encode(FOX)[0], silu] * 16)
            self.assertEqual(server.refused("/embed", {"inputs": "a", "model": "other"})[0], 404)
            self.assertEqual(server.refused("/embed", {"inputs": "a"})[0], 422)


class Limits(Case):
    def test_sizes(self):
        with Server("--max-body", "1K", "--max-texts", "3", "--max-tokens", "20") as server:
            self.assertEqual(server.refused("/embed", {"inputs": "a" * 1024})[0], 413)
            status, said = server.refused("/embed", {"inputs": ["a"] * 4})
            self.assertEqual((status, "at most 3" in said), (413, True))
            for path in ("/embed", "/tokenize"):
                status, said = server.refused(path, {"inputs": ["a b c d e f g"] * 3})
                self.assertEqual((status, "at most 20 tokens" in said), (413, True))
            self.assertEqual(server.refused("/attention", {"text": "a " * 24})[0], 413)
            self.assertEqual(len(server.post("/embed", {"inputs": ["a"] * 3})), 3)

            def chunks(n):
                for _ in range(n):
                    yield b" " * 100
            self.assertEqual(server.ask("POST", "/embed", chunks(15))[0], 413)
            status, _, data = server.ask("POST", "/embed", iter([b'{"inputs"', b':"a b"}']))
            self.assertEqual((status, json.loads(data)), (200, encode("a b")))

    def test_queue_is_full(self):
        """Slow kernels, long requests, room for one: others are told to come again."""
        body = json.dumps({"inputs": ["a " * LIMIT] * 32})
        with Server("-t", "1", "--isa", "ref", "--max-queue", "1") as server:
            with concurrent.futures.ThreadPoolExecutor(12) as pool:
                answers = list(pool.map(lambda _: server.ask("POST", "/embed", body), range(12)))
            found = [status for status, _, _ in answers]
            self.assertEqual(set(found), {200, 429})
            self.assertEqual({h["Retry-After"] for s, h, _ in answers if s == 429}, {"1"})
            self.assertEqual(server.post("/embed", {"inputs": "a"}), encode("a"))

    def test_connections(self):
        """The one that has been silent for the longest time makes room."""
        with Server("--max-connections", "4") as server:
            idle = [server.socket() for _ in range(4)]
            time.sleep(0.2)
            for _ in range(8):
                self.assertEqual(server.get("/health")[0], 200)
            idle[0].settimeout(30)
            self.assertEqual(read_all(idle[0]), b"")
            for s in idle:
                s.close()

    def test_refusals_are_counted(self):
        """Also those that no request was read of: a bad head, and a connection too many."""
        half = b"POST /embed HTTP/1.1\r\nHost: x\r\nContent-Length: 9\r\n\r\n{"
        with Server("--max-connections", "2") as server:
            with server.socket() as s:
                s.sendall(b"GET /health\r\n\r\n")
                self.assertEqual(statuses(read_all(s)), [400])
            busy = [server.socket() for _ in range(2)]
            for s in busy:
                s.sendall(half)
            for _ in range(1000):  # until the heads of both have been read
                if server.ask("GET", "/health")[0] == 503:
                    break
            for s in busy:
                s.close()
            while (answer := server.get("/metrics"))[0] != 200:
                pass
            found = answer[2].decode()
            self.assertIn('bert_requests_total{path="other",status="400"} 1\n', found)
            self.assertIn('bert_requests_total{path="other",status="503"} ', found)

    def test_no_descriptors_left(self):
        """Connections beyond what the system gives: the server neither dies nor spins, and is there afterwards."""
        with Server() as server:
            resource.prlimit(server.process.pid, resource.RLIMIT_NOFILE, (40, 40))
            crowd = [server.socket() for _ in range(120)]
            self.assertEqual(server.get("/health")[0], 200)
            for s in crowd:
                s.close()
            self.assertEqual(server.post("/embed", {"inputs": "a"}), encode("a"))
            began = server.cpu()
            idle = [server.socket() for _ in range(60)]
            time.sleep(1)
            self.assertLess(server.cpu() - began, 0.5)
            for s in idle:
                s.close()

    def test_slow_clients(self):
        with Server("--timeout", "1") as server:
            began = time.monotonic()
            silent, head, body = (server.socket() for _ in range(3))
            head.sendall(b"GET /health HT")
            body.sendall(b"POST /embed HTTP/1.1\r\nHost: x\r\nContent-Length: 9\r\n\r\n{")
            self.assertEqual(read_all(silent), b"")
            self.assertEqual(statuses(read_all(head)), [408])
            self.assertEqual(statuses(read_all(body)), [408])
            self.assertGreater(time.monotonic() - began, 2.5)
            trickle = server.socket()
            try:
                for _ in range(1000):
                    trickle.sendall(b"\r\n" if _ == 0 else b"G")
                    time.sleep(0.1)
                self.fail("a client that sends a byte now and then was never cut off")
            except OSError:
                pass
            for s in (silent, head, body, trickle):
                s.close()

    def test_clients_that_go(self):
        """They ask and leave; the others are served, and nothing grows."""
        body = json.dumps({"inputs": ["a " * LIMIT] * 64}).encode()
        request = b"POST /embed HTTP/1.1\r\nHost: x\r\nContent-Length: %d\r\n\r\n" % len(body) + body
        with Server("--max-queue", "256") as server:
            for _ in range(40):
                s = server.socket()
                s.sendall(request)
                s.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
                s.close()
            self.assertEqual(server.post("/embed", {"inputs": FOX}), encode(FOX))
            deadline = time.monotonic() + 30
            while server.metric("bert_connections") > 1 and time.monotonic() < deadline:
                time.sleep(0.05)
            self.assertEqual(server.metric("bert_connections"), 1)


class BeginningAndEnd(Case):
    def test_key(self):
        key = self.folder / "key"
        key.write_text("sesame open\r\nanother\n")
        with Server("--api-key-file", str(key)) as server:
            def status(path, given):
                return server.ask("GET", path, headers={"Authorization": given} if given else {})[0]
            for wrong in (None, "Bearer sesame", "Bearer sesame opeN", "Bearer sesame open ", "Bearer ", "sesame open",
                          "Basic sesame open", "Bearer sesame opensesame open"):
                expected = 200 if wrong == "Bearer sesame open " else 401  # white space around a field's value is none
                self.assertEqual(status("/info", wrong), expected, wrong)
            self.assertEqual(status("/info", "Bearer sesame open"), 200)
            self.assertEqual(status("/info", "bearer sesame open"), 200)  # a scheme has no case (RFC 9110, section 11.1)
            self.assertEqual([status(path, None) for path in ("/health", "/", "/metrics", "/v1/models", "/nothing")],
                             [200, 200, 401, 401, 401])
            self.assertEqual(server.refused("/embed", {"inputs": "a"})[0], 401)
        for wrong in ("\n", "", "sesame\0open\n", "sesame \n", " sesame", "ses\tame", "s" * 1025):
            key.write_text(wrong)
            self.refused(1, "expected a key", "serve", "-m", TINY, "--port", "0", "--api-key-file", str(key))
        self.refused(1, "cannot read", "serve", "-m", TINY, "--port", "0", "--api-key-file", str(self.folder / "none"))

    def test_socket(self):
        path = str(self.folder / "s")
        with Server("--socket", path) as server:
            self.assertEqual(server.address, "unix:" + path)
            self.assertTrue(stat.S_ISSOCK(os.stat(path).st_mode))
            self.assertEqual(server.post("/embed", {"inputs": TEXTS}), encode(*TEXTS))
            self.refused(1, "cannot make the socket", "serve", "-m", TINY, "--socket", path)
            self.assertEqual(server.get("/health")[0], 200)
        self.assertFalse(os.path.exists(path))
        with socket.socket(socket.AF_UNIX) as left:
            left.bind(path)
        with Server("--socket", path) as server:
            self.assertEqual(server.get("/health")[0], 200)

    def test_port_is_taken(self):
        with Server() as server:
            port = server.address.rsplit(":", 1)[1]
            self.refused(1, "cannot listen", "serve", "-m", TINY, "--port", port)

    def test_usage(self):
        self.refused(2, "found an empty one", "serve", "-m", TINY, "--socket", "")
        self.refused(2, "takes no TEXT", "serve", "-m", TINY, "text")
        self.refused(2, "--port", "serve", "-m", TINY, "--port", "70000")
        self.refused(2, "takes the place of", "serve", "-m", TINY, "--socket", "s", "--port", "0")
        self.refused(2, "takes the place of", "serve", "-m", TINY, "--socket", "s", "--host", "localhost")
        self.refused(2, "are called tiny-bert", "serve", "-m", TINY, "-m", TINY)
        self.refused(1, "nowhere", "serve", "-m", "nowhere")
        self.assertIn("--api-key-file", bert("serve", "--help", check=0).stdout.decode())
        self.assertIn("\n  serve ", bert("--help", check=0).stdout.decode())

    def drain(self, number):
        """Requests that are queued when the signal comes are answered; later ones are not taken."""
        body = json.dumps({"inputs": ["a " * LIMIT] * 12})
        server = Server("-t", "1", "--isa", "ref", "--max-wait", "0", "--pass-tokens", "1024")
        clients = [server.connect() for _ in range(4)]
        idle = server.socket()
        for c in clients:
            c.request("POST", "/embed", body)
        deadline = time.monotonic() + 30
        while time.monotonic() < deadline:  # until all are in the queue or behind it
            if server.metric("bert_queue_waiting") + server.metric("bert_pass_requests_total") >= 3:
                break
        server.process.send_signal(number)
        self.assertEqual(read_all(idle), b"")
        expected = encode("a " * LIMIT)
        for c in clients:
            answer = c.getresponse()
            self.assertIn(answer.status, (200, 503))
            if answer.status == 200:
                self.assertEqual(json.loads(answer.read()), expected * 12)
        with self.assertRaises(ConnectionRefusedError):
            server.connect().connect()
        self.assertEqual(server.process.communicate(timeout=60), ("", ""))
        self.assertEqual(server.process.returncode, 0)
        for c in clients:
            c.close()
        idle.close()

    def test_drain(self):
        self.drain(signal.SIGTERM)
        self.drain(signal.SIGINT)

    def test_drain_of_an_answer_under_way(self):
        """It began before the signal, so it does not say that the connection ends behind it; it ends nevertheless."""
        path = str(self.folder / "s")
        server = Server("--socket", path)
        c = server.connect()
        c.request("POST", "/attention", json.dumps({"text": "a " * LIMIT, "what": "weights,scores,head_output"}))
        answer = c.getresponse()  # its head; the body is more than a Unix socket holds
        self.assertGreater(int(answer.headers["Content-Length"]), 1 << 20)
        server.process.send_signal(signal.SIGTERM)
        while os.path.exists(path):
            time.sleep(0.01)
        json.loads(answer.read())
        self.assertEqual(server.process.communicate(), ("", ""))
        self.assertEqual(server.process.returncode, 0)
        c.close()


class Hostile(WithServer):
    """The rows of manifest_http.jsonl: raw bytes on a connection, and bodies for /v1/embeddings."""
    args = ("--timeout", "1")

    def send(self, data):
        """What is answered; the client sends everything, then waits. None: it never ended."""
        with self.server.socket() as s:
            s.settimeout(30)
            try:
                s.sendall(data)
            except OSError:
                pass  # refused before all was sent
            return read_all(s)

    def fits(self, expected, found, timed_out):
        name = str(found[0]) if found else "close"
        return (name in expected or (name[0] == "2" and "2xx" in expected) or
                ("timeout" in expected and name in ("408", "close") and timed_out))

    def judge(self, row, data):
        began = time.monotonic()
        found = statuses(self.send(data))
        timed_out = time.monotonic() - began > 0.9
        return None if self.fits(row["expect"], found, timed_out) else (row["file"], found, row["expect"])

    def rows(self, kind):
        with open(DATA / "hostile" / "manifest_http.jsonl", encoding="utf-8") as f:
            rows = [row for row in map(json.loads, f) if row["kind"] == kind]
        return [(row, (DATA / "hostile" / row["file"]).read_bytes()) for row in rows]

    def check(self, pairs):
        with concurrent.futures.ThreadPoolExecutor(32) as pool:  # most of them wait for the server's patience to end
            wrong = [w for w in pool.map(lambda pair: self.judge(*pair), pairs) if w]
        self.assertEqual(wrong, [])
        self.assertEqual(self.server.post("/embed", {"inputs": FOX}), encode(FOX))

    def test_raw(self):
        pairs = self.rows("http")
        self.assertEqual(len(pairs), 80)
        self.check(pairs)

    def test_raw_on_an_endpoint(self):
        """The same framing where a body is taken: refused, cut off, or 4xx for what the body holds; never 2xx."""
        pairs = [(row, data.replace(b"POST / ", b"POST /embed ")) for row, data in self.rows("http") if b"POST / " in data]
        self.assertGreater(len(pairs), 30)
        fine = {"100", "400", "411", "413", "417", "422", "431", "501", "close", "timeout"}
        self.check([({**row, "expect": fine}, data) for row, data in pairs])

    def test_bodies(self):
        pairs = self.rows("http_body")
        self.assertEqual(len(pairs), 46)
        head = b"POST /v1/embeddings HTTP/1.1\r\nHost: x\r\nConnection: close\r\nContent-Length: %d\r\n\r\n"
        self.check([(row, head % len(body) + body) for row, body in pairs])
        head = head.replace(b"/v1/embeddings", b"/embed")
        renamed = [(row, body.replace(b'"input"', b'"inputs"').replace(b'"INPUT"', b'"INPUTS"')) for row, body in pairs]
        self.check([(row, head % len(body) + body) for row, body in renamed])

    def test_pipelined(self):
        """One answer and a close: what follows on the connection is never taken for something else."""
        get = b"GET /health HTTP/1.1\r\nHost: x\r\n\r\n"
        for first in (get, b"POST /embed HTTP/1.1\r\nHost: x\r\nContent-Length: 14\r\n\r\n{\"inputs\":\"a\"}"):
            self.assertEqual(statuses(self.send(first + get + get)), [200])

    def test_kept_connection(self):
        connection = self.server.connect()
        for _ in range(5):
            self.assertEqual(self.server.get("/health", connection=connection)[0], 200)
            self.assertEqual(self.server.post("/embed", {"inputs": "a b"}, connection=connection), encode("a b"))
        socket_before = connection.sock
        self.assertIsNotNone(socket_before)
        connection.sock.sendall(b"GET /health HTTP/1.1\r\nHost: x\r\nX: a\rb\r\n\r\n")
        self.assertEqual(statuses(read_all(connection.sock)), [400])
        connection.close()

    def test_heads_in_pieces(self):
        """A head may come byte by byte, if it comes in time."""
        with self.server.socket() as s:
            for byte in b"GET /health HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n":
                s.sendall(bytes([byte]))
                time.sleep(0.002)
            self.assertEqual(statuses(read_all(s)), [200])

    def test_grammar_of_a_head(self):
        """Each character at the edge of what may be there."""
        rest = b"Host: x\r\nConnection: close\r\n\r\n"
        line = b"GET /health HTTP/1.1\r\n"
        for head, expected in ((line + b"Host:\tx \t\r\nConnection: close\r\n\r\n", 200), (line + b"Hosx: y\r\n" + rest, 200),
                               (line + b"X: \x80\xff~\r\n" + rest, 200), (b"\r\n" + line + rest, 200),
                               (line + b"X: \x7f\r\n" + rest, 400), (line + b"X: \x1f\r\n" + rest, 400),
                               (line + b"X{: y\r\n" + rest, 400), (line + b": y\r\n" + rest, 400),
                               (b" " + line + rest, 400), (b"G{T /health HTTP/1.1\r\n" + rest, 400),
                               (b"GET  HTTP/1.1\r\n" + rest, 400), (b"GET /\x7f HTTP/1.1\r\n" + rest, 400),
                               (b"GET /health\tHTTP/1.1\r\n" + rest, 400), (b"\r" + line + rest, 400),
                               (b"GET /health HTTP/x.1\r\n" + rest, 400), (b"GET /health HTTP/1.x\r\n" + rest, 400),
                               (b"GET /health HTTP/1.2\r\n" + rest, 505), (b"GET /health HTTP/2.0\r\n" + rest, 505)):
            self.assertEqual(statuses(self.send(head)), [expected], head)

    def test_as_many_fields_as_may_be(self):
        """A hundred; that no more will come is known only behind the last one's line."""
        for number, expected in ((100, 200), (101, 431)):
            fields = [b"Host: x\r\n", b"Connection: close\r\n"] + (number - 2) * [b"X: y\r\n"]
            with self.server.socket() as s:
                for line in [b"GET /health HTTP/1.1\r\n", *fields, b"\r\n"]:
                    s.sendall(line)
                    time.sleep(0.002)
                self.assertEqual(statuses(read_all(s)), [expected])


if not BUILT:
    load_tests = without_server

if __name__ == "__main__":
    unittest.main()
