#!/usr/bin/env python3
"""Sentence models and what sentence-transformers makes of texts with them: make_sentence_goldens.py OUT_FOLDER

Writes small seeded folders as sentence-transformers saves them (and as older releases did), each with a golden.json:
the vectors that SentenceTransformer.encode gives in float64, for each prompt and cut. Needs sentence-transformers.
"""
import json
import pathlib
import shutil
import sys
import tempfile

import torch
from sentence_transformers import SentenceTransformer
from sentence_transformers.base.modules import Dense, Normalize, Transformer
from sentence_transformers.sentence_transformer.modules import Pooling
from transformers import BertConfig, BertModel, BertTokenizerFast

HIDDEN = 16
LETTERS = "abcdefghijklmnopqrstuvwxyz"
WORDS = ["the", "cat", "sat", "on", "mat", "The", "Cat", "Where", "where", "query", "passage", "is", "it"]
TEXTS = ["The cat sat on the mat.", "Where is it?", "", "Cat", "DÉJÀ VU: ẞ and İstanbul, the CAT [MASK] the mat",
         "the cat sat on the mat and then it sat there for a long time, where the dog is not", ["the cat", "is on it"]]
OLD_FLAGS = ["cls_token", "max_tokens", "mean_tokens", "mean_sqrt_len_tokens", "weightedmean_tokens", "lasttoken"]


def transformer(folder, lowercase=True, **options):
    """A BERT with seeded weights, large enough that poolings and activations differ."""
    torch.manual_seed(7)
    marks = list(".,:?!'") + list("àéèßçü")
    vocab = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]"] + WORDS + list(LETTERS) + list(LETTERS.upper()) + marks
    vocab += ["##" + c for c in LETTERS + LETTERS.upper() + "àéèßçü"]
    config = BertConfig(vocab_size=len(vocab), hidden_size=HIDDEN, num_hidden_layers=2, num_attention_heads=2,
                        intermediate_size=32, max_position_embeddings=40, initializer_range=0.6)
    BertModel(config).save_pretrained(folder)
    length = options.pop("model_max_length", 40)
    tokenizer = BertTokenizerFast(vocab={word: i for i, word in enumerate(vocab)}, do_lower_case=lowercase,
                                  strip_accents=False, model_max_length=length)
    assert tokenizer.tokenize("the Cat")[0] == "the", "the tokenizer has not taken the vocabulary"
    tokenizer.save_pretrained(folder)
    return Transformer(str(folder), **options)


def dense(seed, inputs, outputs, activation, **options):
    torch.manual_seed(seed)
    layer = Dense(inputs, outputs, activation_function=activation, **options)
    for weight in layer.parameters():
        torch.nn.init.normal_(weight, std=0.5)
    return layer


def make(out, name, modules, after=None, **options):
    """Saves the model, lets `after` rewrite its files, loads it again and encodes the texts with it."""
    target = out / name
    shutil.rmtree(target, ignore_errors=True)
    with tempfile.TemporaryDirectory() as scratch:
        SentenceTransformer(modules=modules(pathlib.Path(scratch)), device="cpu", **options).save(str(target))
    for spare in ("README.md", "special_tokens_map.json"):
        (target / spare).unlink(missing_ok=True)
    if after:
        after(target)
    model = SentenceTransformer(str(target), device="cpu").double()
    runs = []
    for prompt in [None] + sorted(model.prompts):
        for dim in (None, 5):
            normalize = any(isinstance(m, Normalize) for m in model) and isinstance(model[-1], Normalize)
            vectors = model.encode(TEXTS, prompt_name=prompt, truncate_dim=dim, normalize_embeddings=normalize)
            runs.append({"prompt": prompt, "dim": dim, "vectors": [[float(f"{x:.9g}") for x in v] for v in vectors]})
    golden = {"dim": model.get_sentence_embedding_dimension(), "texts": TEXTS, "runs": runs}
    (target / "golden.json").write_text(json.dumps(golden, ensure_ascii=False) + "\n", encoding="utf-8")
    print(name, golden["dim"], len(runs), sorted(p.name for p in target.iterdir()))


def old_pooling(modes):
    """1_Pooling/config.json as releases before 5.4 wrote it."""
    def after(target):
        config = {"word_embedding_dimension": HIDDEN, "include_prompt": True}
        config |= {f"pooling_mode_{flag}": flag in modes for flag in OLD_FLAGS}
        (target / "1_Pooling" / "config.json").write_text(json.dumps(config, indent=2) + "\n")
    return after


def old_names(target):
    """Module types and a folder of the transformer's own as older releases had them."""
    own = target / "0_Transformer"
    own.mkdir()
    for file in list(target.iterdir()):
        if file.is_file() and file.name not in ("modules.json", "config_sentence_transformers.json"):
            file.rename(own / file.name)
    modules = [("0", "0_Transformer", "Transformer"), ("1", "1_Pooling", "Pooling")]
    listed = [{"idx": i, "name": n, "path": p, "type": f"sentence_transformers.models.{t}"}
              for i, (n, p, t) in enumerate(modules)]
    (target / "modules.json").write_text(json.dumps(listed, indent=2) + "\n")
    settings = {"max_seq_length": 14, "do_lower_case": True}
    (own / "sentence_bert_config.json").write_text(json.dumps(settings) + "\n")


def context(span, windows):
    """The window in which the token of this span is farthest from an end, and its place there; the earliest of equals."""
    places = []
    for number, spans in enumerate(windows):
        inside = spans[1:-1]  # without [CLS] and [SEP]
        if span in inside:
            k = inside.index(span)
            places.append((-min(k, len(inside) - 1 - k), number, k + 1))
    return min(places)[1:]


def make_windows(target, window, stride):
    """States and vectors of a long text in overlapping windows, by Hugging Face's tokenizer and model."""
    text = "The cat sat on the mat, and where it sat there is the query: is it a passage on the cat? " * 2
    model = SentenceTransformer(str(target), device="cpu").double()
    tokenizer, bert = model.tokenizer, model[0].model
    options = dict(return_offsets_mapping=True, truncation=True)
    cut = tokenizer(text, max_length=window, stride=stride, return_overflowing_tokens=True, **options)
    whole = [tuple(span) for span in tokenizer(text, max_length=10000, **options)["offset_mapping"][1:-1]]
    windows = [[tuple(span) for span in spans] for spans in cut["offset_mapping"]]
    with torch.no_grad():
        states = [bert(input_ids=torch.tensor([ids])).last_hidden_state[0] for ids in cut["input_ids"]]
    rows = [states[number][k] for number, k in (context(span, windows) for span in whole)]
    hidden = torch.stack([states[0][0]] + rows + [states[-1][-1]])
    weights = torch.arange(1, len(hidden) + 1).double()[:, None]
    vectors = [torch.stack([s[0] for s in states]).mean(0), hidden.max(0).values, hidden.mean(0),
               hidden.sum(0) / len(hidden) ** 0.5, (weights * hidden).sum(0) / weights.sum(),
               torch.stack([s[-1] for s in states]).mean(0)]
    golden = {"text": text, "window": window, "stride": stride, "windows": len(states),
              "hidden": [[float(f"{x:.9g}") for x in row] for row in hidden.tolist()],
              "vector": [float(f"{x:.9g}") for x in torch.cat(vectors).tolist()]}
    (target / "windows.json").write_text(json.dumps(golden) + "\n", encoding="utf-8")
    print(target.name, golden["windows"], "windows,", len(hidden), "tokens")


def main():
    out = pathlib.Path(sys.argv[1])
    prompts = {"query": "query: ", "passage": "passage is it: ", "none": ""}
    make(out, "every-flag", lambda f: [transformer(f), Pooling(HIDDEN)], old_pooling(OLD_FLAGS))
    make_windows(out / "every-flag", 13, 5)
    make(out, "no-flag", lambda f: [transformer(f, model_max_length=12), Pooling(HIDDEN)], old_pooling([]))
    make(out, "modes", lambda f: [transformer(f), Pooling(HIDDEN, ("lasttoken", "mean", "cls")), Normalize()])
    every_mode = ("cls", "max", "mean", "mean_sqrt_len_tokens", "weightedmean", "lasttoken")
    make(out, "prompts", lambda f: [transformer(f), Pooling(HIDDEN, "mean")],
         prompts=prompts, default_prompt_name="query")
    make(out, "prompts-left-out", lambda f: [transformer(f), Pooling(HIDDEN, every_mode, include_prompt=False)],
         prompts=prompts)
    make(out, "dense", lambda f: [transformer(f), Pooling(HIDDEN, "mean"), dense(1, HIDDEN, 24, torch.nn.Tanh()),
                                  dense(2, 24, 12, torch.nn.Identity(), bias=False), Normalize()])
    make(out, "dense-residual",
         lambda f: [transformer(f), Pooling(HIDDEN, "cls"), Normalize(),
                    dense(3, HIDDEN, HIDDEN, torch.nn.GELU(), use_residual=True),
                    dense(4, HIDDEN, 20, torch.nn.ReLU(), use_residual=True), dense(5, 20, 8, torch.nn.SiLU())])
    make(out, "lower-case", lambda f: [transformer(f, lowercase=False), Pooling(HIDDEN, "mean")], old_names,
         prompts=prompts)


if __name__ == "__main__":
    main()
