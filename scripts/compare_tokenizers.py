#!/usr/bin/env python3
"""libbert's tokenizer against the tokenizers library on generated strings: every array of every part must be equal.

    compare_tokenizers.py LIBBERT.SO [COUNT]             compares COUNT strings (200000)
    compare_tokenizers.py LIBBERT.SO 5000 --write FILE   also writes strings and answers for the test suite

Strings mix words, pieces, special tokens, scripts, marks, controls and white space; options mix pairs, truncation,
sides, strides and templates. Needs `tokenizers` 0.23.3.
"""
import json
import pathlib
import random
import sys

from libbert import Failed, Tokenizer
from tokenizers import Tokenizer as HF

DATA = pathlib.Path(__file__).resolve().parent.parent / "tests" / "data" / "tokenizer"
FILES = {"uncased": DATA / "all-MiniLM-L6-v2-tokenizer.json", "cased": DATA / "cased" / "tokenizer.json"}
STRATEGIES = ["longest_first", "only_first", "only_second"]
RANGES = [(0x20, 0x7F), (0x20, 0x7F), (0, 0x20), (0xA0, 0x180), (0x300, 0x370), (0x370, 0x530), (0x590, 0x700),
          (0x8D0, 0x8F0), (0x900, 0xA00), (0xE00, 0xE80), (0x1100, 0x1200), (0x1E00, 0x2100), (0x2000, 0x2070),
          (0x2B00, 0x2C00), (0x3000, 0x3130), (0x4E00, 0x4F00), (0xAC00, 0xAD00), (0xF900, 0xFB00), (0xFE00, 0x10000),
          (0x1D150, 0x1D180), (0x1E000, 0x1E030), (0x1E940, 0x1E960), (0x1F300, 0x1F650), (0x2B800, 0x2B940),
          (0xE0000, 0xE0080), (0, 0xD800), (0x10000, 0x110000)]


class Strings:
    def __init__(self, seed, most_pieces):
        self.random, self.most_pieces = random.Random(seed), most_pieces
        vocab = json.loads(FILES["uncased"].read_text())["model"]["vocab"]
        self.words = [w.removeprefix("##") for w in vocab if not w.startswith("[unused")]

    def character(self):
        low, high = self.random.choice(RANGES)
        c = self.random.randrange(low, high)
        return chr(c) if not 0xD800 <= c < 0xE000 else " "

    def piece(self):
        r, choice = self.random.random(), self.random.choice
        if r < 0.45:
            word = choice(self.words)
            return choice([word, word.upper(), word.capitalize(), word + choice(self.words)])
        if r < 0.50:
            return choice(["[SEP]", "[CLS]", "[MASK]", "[UNK]", "[PAD]", "[sep]", "[MAS", "K]"])
        if r < 0.55:
            return choice(["\u0301", "\u0323", "\u0130", "\u1e9e", "\u2126", "\u1d15e", "\u08d4", "\u0344", "\ufffd"])
        if r < 0.57:
            return choice(["a", "\u00e9", "1"]) * self.random.randrange(1, 130)
        return "".join(self.character() for _ in range(self.random.randrange(1, 5)))

    def string(self):
        joints = ["", " ", " ", "\t", "  ", "-"]
        return "".join(self.piece() + self.random.choice(joints) for _ in range(self.random.randrange(0, self.most_pieces)))

    def options(self):
        """Options of a batch, as HF's enable_truncation has them; None: no truncation."""
        if self.random.random() < 0.5:
            return None
        length = self.random.randrange(3, 24)
        return {"max_length": length, "stride": self.random.randrange(0, max(1, min(length - 2, 6))),
                "strategy": self.random.choice(STRATEGIES), "direction": self.random.choice(["left", "right"])}


def rows(encoding, spell=False):
    parts = []
    for e in [encoding] + encoding.overflowing:
        words = [-1 if w is None else w for w in e.word_ids]
        row = {"ids": e.ids, "type_ids": e.type_ids, "special": e.special_tokens_mask, "offsets": e.offsets, "words": words}
        if spell:
            row["tokens"] = e.tokens
        parts.append(row)
    return parts


def reference(hf, texts, options, special):
    hf.no_padding()
    if options is None:
        hf.no_truncation()
    else:
        hf.enable_truncation(**options)
    return [rows(e) for e in hf.encode_batch(texts, add_special_tokens=special)]


def ours(tokenizer, texts, options, special):
    values = {"no_special_tokens": int(not special)}
    if options is not None:
        values.update(max_length=options["max_length"], stride=options["stride"],
                      truncation=STRATEGIES.index(options["strategy"]), truncation_side=int(options["direction"] == "left"))
    return tokenizer.encode(texts, **values)


def attempt(call, *arguments):
    """The result, or None if the library refuses: HF by an exception or a panic."""
    try:
        return call(*arguments)
    except Failed:
        return None
    except BaseException as error:  # PanicException is not an Exception
        if isinstance(error, (KeyboardInterrupt, SystemExit)):
            raise
        return None


def compare(library, count, write):
    strings = Strings(20261130, 7 if write else 14)
    models = {name: (HF.from_file(str(path)), Tokenizer(library, str(path))) for name, path in FILES.items()}
    done = different = refused = 0
    while done < count:
        name, options, special = strings.random.choice(["uncased", "uncased", "cased"]), strings.options(), strings.random.random() < 0.8
        pair = strings.random.random() < 0.3
        batch = [(strings.string(), strings.string()) if pair else strings.string() for _ in range(min(50, count - done))]
        # One by one where a text may be refused, so that this hides no other.
        for texts in [batch] if options is None else [[text] for text in batch]:
            want = attempt(reference, models[name][0], texts, options, special)
            have = attempt(ours, models[name][1], texts, options, special)
            refused += want is None
            if want != have:
                different += 1
                report(name, texts, options, special, want, have)
            if write is not None:
                write_rows(write, name, texts, options, special, want)
        done += len(batch)
    print(f"{done} strings: {different} differ, {refused} refused by the library")
    return different


def report(name, texts, options, special, want, have):
    print("DIFFERS", name, options, special, json.dumps(texts)[:400])
    for w, h in zip(want or [], have or []):
        if w != h:
            print(" want", w, "\n have", h)
            return


def write_rows(write, name, texts, options, special, want):
    for i, text in enumerate(texts):
        a, b = text if isinstance(text, tuple) else (text, None)
        row = {"model": name, "text": a, "pair": b, "options": options, "special": special}
        if want is not None:
            first = want[i][0]
            row.update(ids=first["ids"], offsets_cp=[x for pair in first["offsets"] for x in pair], words=first["words"],
                       overflow=[part["ids"] for part in want[i][1:]])
        write.write(json.dumps(row, separators=(",", ":")) + "\n")


def main():
    count = int(sys.argv[2]) if len(sys.argv) > 2 else 200000
    write = open(sys.argv[4], "w", encoding="ascii") if sys.argv[3:4] == ["--write"] else None
    sys.exit(compare(sys.argv[1], count, write) > 0)


if __name__ == "__main__":
    main()
