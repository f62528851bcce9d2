"""The tokenizer of libbert.so by ctypes, as far as the comparing scripts need it."""
import ctypes as c
import pathlib
import sys

sys.path.append(str(pathlib.Path(__file__).resolve().parent.parent / "bindings/python/libbert"))
import _c  # noqa: E402


class Failed(Exception):
    """A call that did not return BERT_OK; the message is libbert's."""


def values(address, kind, n):
    return c.cast(address, c.POINTER(kind))[:n]


class Tokenizer:
    def __init__(self, library, path=None, files=None, tokenizer_json=False):
        """From a path, or from files: a dictionary of names and bytes."""
        self.lib = _c.load(library)
        self.handle, self.tokens, self.err = c.c_void_p(), c.c_void_p(), _c.Error()
        options = _c.sized(_c.TokenizerOptions, tokenizer_json=tokenizer_json)
        if files is None:
            code = self.lib.bert_tokenizer_open(self.handle, path.encode(), options, self.err)
        else:
            array = (_c.File * len(files))(*[_c.File(n.encode(), d, len(d)) for n, d in files.items()])
            code = self.lib.bert_tokenizer_open_files(self.handle, array, len(files), options, self.err)
        self.check(code)

    def check(self, code):
        if code:
            raise Failed(self.err.text.decode())

    def close(self):
        self.lib.bert_tokens_close(c.byref(self.tokens))
        self.lib.bert_tokenizer_close(c.byref(self.handle))

    def spelling(self, i, part, token):
        n = c.c_size_t()
        at = self.lib.bert_tokens_spelling(self.tokens, i, part, token, n)
        return c.string_at(at, n.value).decode()

    def part(self, i, part, spell):
        e = self.lib.bert_tokens_at(self.tokens, i, part)
        offsets = values(e.offsets_cp, c.c_uint32, 2 * e.n)
        row = {"ids": values(e.ids, c.c_int32, e.n), "type_ids": values(e.type_ids, c.c_int32, e.n),
               "special": values(e.special_tokens_mask, c.c_uint8, e.n),
               "offsets": list(zip(offsets[::2], offsets[1::2])), "words": values(e.words, c.c_int32, e.n)}
        if spell:
            row["tokens"] = [self.spelling(i, part, k) for k in range(e.n)]
        return row

    def encode(self, texts, spell=False, **options):
        """texts: strings or pairs -> for each a list of parts."""
        how = _c.sized(_c.TokenizeOptions, offsets_cp=1, overflow=1, **options)
        array = (_c.Text * len(texts))()
        for i, text in enumerate(texts):
            a, b = text if isinstance(text, tuple) else (text, None)
            a = a.encode()
            array[i].a, array[i].a_len = a, len(a)
            if b is not None:
                b = b.encode()
                array[i].b, array[i].b_len = b, len(b)
        self.check(self.lib.bert_tokenize(self.tokens, self.handle, array, len(texts), how, self.err))
        return [[self.part(i, p, spell) for p in range(self.lib.bert_tokens_parts(self.tokens, i))]
                for i in range(len(texts))]

    def decode(self, ids, skip_special_tokens, clean_up):
        array, room = (c.c_int32 * len(ids))(*ids), 1 << 20
        text = c.create_string_buffer(room)
        n = self.lib.bert_tokenizer_decode(self.handle, text, room, array, len(ids), skip_special_tokens, clean_up)
        return text.raw[:n].decode()
