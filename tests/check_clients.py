#!/usr/bin/env python3
"""bert serve and the clients that people have: the openai package, huggingface_hub, and the requests of
text-embeddings-inference's documentation. check_clients.py BERT MODEL RERANKER; needs openai and huggingface_hub."""
import json
import os
import pathlib
import sys
import tempfile
import unittest
import urllib.request

import huggingface_hub
import openai

BERT, MODEL, RERANKER = sys.argv[1:4]
os.environ["BERT"] = BERT
sys.path.insert(0, str(pathlib.Path(__file__).parent / "cli"))
from command import bert, float32, lines  # noqa: E402
from serving import Server  # noqa: E402

TEXTS = ["What is Deep Learning?", "The quick brown fox jumps over the lazy dog.", "naïve café"]


def encode(*texts, args=()):
    return [line["embedding"] for line in lines(bert("encode", "-m", MODEL, *args, *texts, check=0))]


def post(server, path, text):
    """As curl sends it."""
    request = urllib.request.Request(server.address + path, text.encode(), {"Content-Type": "application/json"})
    with urllib.request.urlopen(request) as answer:
        return json.load(answer)


class OpenAI(unittest.TestCase):
    def client(self, server, **more):
        return openai.OpenAI(base_url=server.address + "/v1", api_key="none", max_retries=0, **more)

    def test_embeddings(self):
        with Server(model=MODEL) as server:
            client = self.client(server)
            answer = client.embeddings.create(model="text-embedding-3-small", input=TEXTS)  # asks for base64
            self.assertEqual([list(map(float32, d.embedding)) for d in answer.data],
                             [list(map(float32, v)) for v in encode(*TEXTS)])
            self.assertGreater(answer.usage.total_tokens, 10)
            one = client.embeddings.create(model="x", input=TEXTS[0], encoding_format="float", dimensions=5)
            self.assertEqual(one.data[0].embedding, encode(TEXTS[0], args=("--dim", "5"))[0])
            self.assertEqual([m.id for m in client.models.list()], [pathlib.Path(MODEL).name])

    def test_errors(self):
        with Server(model=MODEL) as server:
            client = self.client(server)
            for ask in ({"input": []}, {"input": "a", "dimensions": 10 ** 6}):
                with self.assertRaises(openai.UnprocessableEntityError):
                    client.embeddings.create(model="x", **ask)

    def test_key(self):
        with tempfile.NamedTemporaryFile("w") as key:
            key.write("secret\n")
            key.flush()
            with Server("--api-key-file", key.name, model=MODEL) as server:
                with self.assertRaises(openai.AuthenticationError):
                    self.client(server).embeddings.create(model="x", input="a")
                client = openai.OpenAI(base_url=server.address + "/v1", api_key="secret")
                self.assertEqual(len(client.embeddings.create(model="x", input="a").data), 1)


class TextEmbeddingsInference(unittest.TestCase):
    def test_hub_client(self):
        with Server(model=MODEL) as server:
            client = huggingface_hub.InferenceClient(server.address)
            found = client.feature_extraction(TEXTS[0])
            self.assertEqual(found.tolist(), [[float32(x) for x in encode(TEXTS[0])[0]]])

    def test_documented_requests(self):
        with Server(model=MODEL) as server:
            self.assertEqual(post(server, "/embed", '{"inputs":"What is Deep Learning?"}'), encode(TEXTS[0]))
            self.assertEqual(post(server, "/embed", '{"inputs":["Today is a nice day", "I like you"]}'),
                             encode("Today is a nice day", "I like you"))
            answer = post(server, "/v1/embeddings",
                          '{"input":"What is Deep Learning?","model":"text-embeddings-inference","encoding_format":"float"}')
            self.assertEqual(answer["data"][0]["embedding"], encode(TEXTS[0])[0])
            tokens = post(server, "/tokenize", '{"inputs":"What is Deep Learning?"}')
            self.assertEqual({frozenset(t) for t in tokens[0]}, {frozenset(("id", "text", "special", "start", "stop"))})
        with Server(model=RERANKER) as server:
            found = post(server, "/rerank", '{"query":"What is Deep Learning?", "texts": ["Deep Learning is not...", '
                                            '"Deep learning is..."], "raw_scores": false}')
            self.assertEqual(sorted(f["index"] for f in found), [0, 1])
            self.assertGreaterEqual(found[0]["score"], found[1]["score"])


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1])
