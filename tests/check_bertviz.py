#!/usr/bin/env python3
"""The real bertviz opens what `bert attention --format bertviz` writes: check_bertviz.py BERT MODEL [--record]

Needs torch and bertviz, so it runs by name (`scripts/check bertviz`). --record stores each file that bertviz took in
tests/data/bertviz/, and tests/test_bertviz_record.py, which needs neither, holds the command to that.
"""
import contextlib
import io
import json
import pathlib
import re
import subprocess
import sys
import tempfile

import bertviz
import numpy
import safetensors.numpy
import torch

ROOT = pathlib.Path(__file__).resolve().parent.parent
RECORDS = ROOT / "tests/data/bertviz"
CASES = {"single": ["the quick brown fox"], "pair": ["--pair", "he can run", "what can he do"]}


def ask(bert, model, arguments):
    command = [bert, "attention", "-m", model, "--format", "bertviz", *arguments]
    return json.loads(subprocess.run(command, check=True, capture_output=True, text=True).stdout)


def page_parameters(html):
    """What bertviz hands to its page."""
    start = re.search(r"const params = ", html).end()
    return json.JSONDecoder().raw_decode(html[start:])[0]


def check(found):
    """bertviz's own shape rules hold, and the page shows our tokens and all layers and heads."""
    attention = [torch.tensor(layer).unsqueeze(0) for layer in found["attention"]]
    tokens, layers, heads = found["tokens"], len(attention), attention[0].shape[1]
    assert all(a.shape == (1, heads, len(tokens), len(tokens)) for a in attention), "not [L][A][T][T]"
    assert all(torch.allclose(a.sum(-1), torch.ones(()), atol=1e-5) for a in attention), "a row does not sum to 1"
    for view in (bertviz.head_view, bertviz.model_view):
        html = view(attention, tokens, found["sentence_b_start"], html_action="return").data
        shown = page_parameters(html)
        assert shown["attention"][0]["left_text"] == tokens, view.__name__
        assert len(shown["attention"][0]["attn"]) == layers, view.__name__
        assert len(shown["attention"][0]["attn"][0]) == heads, view.__name__
        assert len(shown["attention"]) == (1 if found["sentence_b_start"] is None else 5), view.__name__


def check_arrays(bert, model, arguments, found):
    """npz and safetensors hold the same numbers."""
    with tempfile.TemporaryDirectory() as folder:
        for ending in ("npz", "safetensors"):
            path = f"{folder}/maps.{ending}"
            subprocess.run([bert, "attention", "-m", model, "-o", path, *arguments], check=True)
            arrays = numpy.load(path) if ending == "npz" else safetensors.numpy.load_file(path)
            for number, layer in enumerate(found["attention"]):
                assert numpy.array_equal(arrays[f"attentions.{number}"][0], numpy.array(layer, numpy.float32)), ending


def run_blocks(page, bert, model):
    """The Python with bertviz that README or a page of docs/ shows, each block on the file that it opens. Returns how many."""
    blocks = re.findall(r"^```python\n(.*?)^```", (ROOT / page).read_text(encoding="utf-8"), re.M | re.S)
    blocks = [block for block in blocks if "from bertviz" in block]
    for block in blocks:
        name = re.search(r'"(fox\.\w+)"', block)[1]
        more = ["--what", "weights,query,key"] if "neuron_view" in block else ["--format", "bertviz"] if name == "fox.json" else []
        with tempfile.TemporaryDirectory() as folder, contextlib.chdir(folder):
            subprocess.run([bert, "attention", "-m", model, "-o", name, *more, *CASES["single"]], check=True)
            with contextlib.redirect_stdout(io.StringIO()):  # outside a notebook the page is only named
                exec(block, {})
        print(f"{page}: bertviz takes {name}")
    return len(blocks)


def main():
    bert, model = (str(pathlib.Path(path).resolve()) for path in sys.argv[1:3])
    for name, arguments in CASES.items():
        found = ask(bert, model, arguments)
        check(found)
        check_arrays(bert, model, arguments, found)
        print(f"{name}: head_view and model_view of bertviz show {len(found['tokens'])} tokens")
        if "--record" in sys.argv:
            RECORDS.mkdir(parents=True, exist_ok=True)
            record = {"model": pathlib.Path(model).name, "arguments": arguments, "bertviz": "1.4.1", "file": found}
            (RECORDS / f"{name}.json").write_text(json.dumps(record) + "\n", encoding="utf-8")
    blocks = sum(run_blocks(page, bert, model) for page in ("README.md", "docs/attention.md"))
    assert blocks == 4, blocks
    print(f"{3 * len(CASES) + blocks} passed, 0 failed")


if __name__ == "__main__":
    main()
