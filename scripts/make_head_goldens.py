#!/usr/bin/env python3
"""What the pipelines of transformers and the CrossEncoder of sentence-transformers say about the tiny models:
make_head_goldens.py [tests/data]

Writes heads/*.jsonl there. Models run in float64. `config` in a row are the members of config.json that were changed.
Offsets are turned into UTF-8 bytes. transformers 5 has no question answering pipeline any more, so the windows are its
tokenizer's and the spans those of its document question answering, whose function for them is called here; the same span
of several windows counts once. Where a text is longer than a window, a token's logits are those of the window in which
it is farthest from the nearer end (the earlier one of two), and transformers' own functions go on from there.
Needs torch, transformers 5, sentence-transformers 6.
"""
import json
import pathlib
import sys
import tempfile

import numpy as np
import torch
from sentence_transformers import CrossEncoder
from transformers import (AutoTokenizer, BertForNextSentencePrediction, BertForQuestionAnswering,
                          BertForTokenClassification, pipeline)
from transformers.pipelines.document_question_answering import select_starts_ends

DATA = pathlib.Path(sys.argv[1] if len(sys.argv) > 1 else "tests/data")
FOX = "The quick brown fox jumps over the lazy dog."
TEXTS = [FOX, "", "Il gatto è sul tappeto; perché no?", "In 1998, she paid $3.50 (or about €3) for it — twice!",
         "don't stop: İstanbul, Straße 日本 and [MASK] 😀 supercalifragilistic\u0301", "New York and John's dog's U.S. visit"]
PAIRS = [("How old are you?", "I am twelve years old."), ("the cat sat on the mat", "the cat lay on the rug"),
         (FOX, ""), ("Where?", "Karina idzie do sklepu. " * 3 + FOX), ("who paid it", TEXTS[3]),
         ("what is it?", "é😀 " * 20 + "a dog's life in 日本"), ("x", "y"), ("old?", FOX + " " + FOX + " " + TEXTS[2])]
DOCUMENTS = [FOX, "I am twelve years old.", "", "the cat sat on the mat", "I am twelve years old.", TEXTS[3]]


class Changed:
    """A folder with the model's files and another config.json."""

    def __init__(self, name, **config):
        self.name, self.config = name, config

    def __enter__(self):
        self.folder = tempfile.TemporaryDirectory()
        source, path = DATA / "models" / self.name, pathlib.Path(self.folder.name)
        for file in source.iterdir():
            if file.name != "config.json":
                (path / file.name).symlink_to(file.resolve())
        config = json.loads((source / "config.json").read_text()) | self.config
        (path / "config.json").write_text(json.dumps({k: v for k, v in config.items() if v is not ...}))
        return str(path)

    def __exit__(self, *_):
        self.folder.cleanup()


def to_bytes(text, characters):
    return len(text[:characters].encode())


def write(name, rows):
    text = "".join(json.dumps(row, ensure_ascii=False) + "\n" for row in rows)
    (DATA / "heads" / name).write_text(text, encoding="utf-8")
    print(name, len(rows))


def classify():
    rows = []
    cases = [("tiny-bert-classifier", {}), ("tiny-bert-classifier", {"problem_type": "multi_label_classification"}),
             ("tiny-bert-classifier", {"problem_type": "regression"}),
             ("tiny-bert-classifier", {"id2label": {"2": "c", "0": "a", "1": "b é"}}),
             ("tiny-bert-reranker", {}), ("tiny-bert-reranker", {"problem_type": "regression"})]
    for name, config in cases:
        with Changed(name, **config) as folder:
            run = pipeline("text-classification", folder, dtype=torch.float64, top_k=None)
            for text, pair in [(t, None) for t in TEXTS[:3]] + PAIRS[:2]:
                inputs = {"text": text} | ({"text_pair": pair} if pair is not None else {})
                rows.append({"model": name, "config": config, "text": text, "pair": pair, "labels": run(inputs)})
    write("classify.jsonl", rows)


def fill_mask():
    rows, folder = [], str(DATA / "models/tiny-bert")
    run = pipeline("fill-mask", folder, dtype=torch.float64)
    for text in ["the [MASK] sat.", "[MASK] and [MASK] in é [MASK]"]:
        found = run(text, top_k=7)
        found = found if isinstance(found[0], list) else [found]
        rows.append({"text": text, "masks": [[{"id": x["token"], "score": x["score"]} for x in m] for m in found]})
    write("fill_mask.jsonl", rows)


def next_sentence():
    rows, folder = [], str(DATA / "models/tiny-bert")
    tokenizer = AutoTokenizer.from_pretrained(folder)
    models = {d: BertForNextSentencePrediction.from_pretrained(folder, dtype=d).eval() for d in (torch.float64, torch.float32)}
    for text, pair in PAIRS + [(b, a) for a, b in PAIRS]:
        inputs = tokenizer([text], [pair], return_tensors="pt", truncation=True, max_length=64)  # lists: "" is a pair
        with torch.no_grad():
            f64, f32 = (m(**inputs).logits[0] for m in models.values())
        rows.append({"text": text, "pair": pair, "is_next": f64.softmax(-1)[0].item(), "f64": f64.tolist(), "f32": f32.tolist()})
    write("nsp.jsonl", rows)


def rerank():
    rows = []
    identity = "torch.nn.modules.linear.Identity"
    for config in [{}, {"sentence_transformers": {"activation_fn": identity, "version": "5.0.0"}},
                   {"sbert_ce_default_activation_function": identity}]:
        with Changed("tiny-bert-reranker", **config) as folder:
            model = CrossEncoder(folder, device="cpu", model_kwargs={"dtype": torch.float64})
            for query in ["How old are you?", ""]:
                ranks = model.rank(query, DOCUMENTS)
                rows.append({"config": config, "query": query, "documents": DOCUMENTS,
                             "scores": [next(float(r["score"]) for r in ranks if r["corpus_id"] == i) for i in range(len(DOCUMENTS))]})
    write("rerank.jsonl", rows)


def combined(model, tokenizer, text, window, stride):
    """What the pipeline's postprocess takes, for the whole text from windows."""
    whole = tokenizer(text, return_offsets_mapping=True, return_special_tokens_mask=True, return_tensors="pt")
    n = whole["input_ids"].shape[1] - 2
    parts = tokenizer(text, truncation=True, max_length=window, stride=stride, return_overflowing_tokens=True)["input_ids"]
    logits, place, begin = torch.zeros(1, n + 2, model.config.num_labels, dtype=torch.float64), [-1] * n, 0
    for ids in parts:
        with torch.no_grad():
            found = model(torch.tensor([ids])).logits[0]
        length = len(ids) - 2
        for k in range(length):
            context = min(k, length - 1 - k)
            if context > place[begin + k]:
                place[begin + k] = context
                logits[0, begin + k + 1] = found[k + 1]
        begin += window - 2 - stride
    return [{"logits": logits, "special_tokens_mask": whole["special_tokens_mask"], "input_ids": whole["input_ids"],
             "offset_mapping": whole["offset_mapping"], "sentence": text, "is_last": True}]


def ner():
    rows, name = [], "tiny-bert-ner"
    for config in [{}, {"id2label": {"0": "O", "1": "PER", "2": "I-B", "3": "B-B", "4": "x-LOC"}}]:
        with Changed(name, **config) as folder:
            run = pipeline("ner", folder, dtype=torch.float64)
            for text, window in [(t, None) for t in TEXTS] + [(FOX + " " + TEXTS[2], 16), (TEXTS[3] + " " + TEXTS[5], 11)]:
                for aggregation in ["none", "simple", "first", "average", "max"]:
                    if window:
                        strategy = run._sanitize_parameters(aggregation_strategy=aggregation)[2]
                        found = run.postprocess(combined(run.model, run.tokenizer, text, window, 4), **strategy)
                    else:
                        found = run(text, aggregation_strategy=aggregation)
                    entities = [{"label": e.get("entity", e.get("entity_group")), "score": float(e["score"]), "word": e["word"],
                                 "start": to_bytes(text, e["start"]), "end": to_bytes(text, e["end"])} for e in found]
                    rows.append({"config": config, "text": text, "aggregation": aggregation, "window": window, "stride": 4,
                                 "entities": entities})
    write("ner.jsonl", rows)


def answer_of(model, tokenizer, question, context, window, stride, top, longest, null):
    parts = tokenizer([question], [context], truncation="only_second", max_length=window, stride=stride,
                      return_overflowing_tokens=True)
    best, least = {}, 1000000
    for p in range(len(parts["input_ids"])):
        ids = torch.tensor([parts["input_ids"][p]])
        with torch.no_grad():
            out = model(ids, token_type_ids=torch.tensor([parts["token_type_ids"][p]]))
        mask = [s != 1 for s in parts.sequence_ids(p)]
        mask[0] = 0
        starts, ends, scores, least = select_starts_ends(
            out.start_logits.numpy(), out.end_logits.numpy(), mask, np.ones_like(ids), min_null_score=least,
            top_k=10**6, handle_impossible_answer=null, max_answer_len=longest)
        for start, end, score in zip(starts, ends, scores):
            first, last = parts.token_to_word(p, start), parts.token_to_word(p, end)
            if start > end or end - start >= longest or first is None:  # what it fills its matrix up with
                continue
            span = parts.word_to_chars(p, first, 1)[0], parts.word_to_chars(p, last, 1)[1]
            best[span] = max(best.get(span, 0), float(score))
    answers = [{"score": s, "start": to_bytes(context, a), "end": to_bytes(context, b), "answer": context[a:b]}
               for (a, b), s in best.items()]
    if null:
        answers.append({"score": least, "start": 0, "end": 0, "answer": ""})
    return sorted(answers, key=lambda x: x["score"], reverse=True)[:top]


def qa():
    rows, folder = [], str(DATA / "models/tiny-bert-qa")
    model = BertForQuestionAnswering.from_pretrained(folder, dtype=torch.float64).eval()
    tokenizer = AutoTokenizer.from_pretrained(folder)
    for question, context in PAIRS:
        for window, stride, top, longest, null in [(64, 32, 1, 15, False), (64, 32, 4, 15, True), (32, 8, 3, 2, False),
                                                   (24, 0, 5, 15, True)]:
            found = answer_of(model, tokenizer, question, context, window, stride, top, longest, null)
            rows.append({"text": question, "pair": context, "window": window, "stride": stride, "top": top,
                         "longest": longest, "null": null, "answers": found})
    write("qa.jsonl", rows)


if __name__ == "__main__":
    for make in (classify, fill_mask, next_sentence, rerank, ner, qa):
        make()
