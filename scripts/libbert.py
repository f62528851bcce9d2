"""The tokenizer of libbert.so by ctypes, as far as the comparing scripts need it."""
import ctypes as c


class Text(c.Structure):
    _fields_ = [("a", c.c_char_p), ("a_len", c.c_size_t), ("b", c.c_char_p), ("b_len", c.c_size_t)]


class OpenOptions(c.Structure):
    _fields_ = [("size", c.c_size_t), ("memory", c.c_void_p), ("notes", c.c_void_p), ("tokenizer_json", c.c_int),
                ("strict", c.c_int)]


class File(c.Structure):
    _fields_ = [("name", c.c_char_p), ("data", c.c_char_p), ("len", c.c_size_t)]


class Error(c.Structure):
    _fields_ = [("code", c.c_int), ("text", c.c_char * 508)]


class Options(c.Structure):
    _fields_ = [("size", c.c_size_t), ("max_length", c.c_size_t), ("truncation", c.c_int), ("truncation_side", c.c_int),
                ("stride", c.c_size_t), ("overflow", c.c_int), ("no_special_tokens", c.c_int),
                ("literal_specials", c.c_int), ("padding", c.c_int), ("pad_length", c.c_size_t),
                ("pad_to_multiple", c.c_size_t), ("padding_side", c.c_int), ("offsets_cp", c.c_int)]


class Encoding(c.Structure):
    _fields_ = [("n", c.c_size_t), ("ids", c.POINTER(c.c_int32)), ("type_ids", c.POINTER(c.c_int32)),
                ("attention_mask", c.POINTER(c.c_uint8)), ("special_tokens_mask", c.POINTER(c.c_uint8)),
                ("offsets", c.POINTER(c.c_uint32)), ("offsets_cp", c.POINTER(c.c_uint32)),
                ("words", c.POINTER(c.c_int32)), ("truncated", c.c_size_t), ("unknown", c.c_size_t),
                ("invalid_utf8", c.c_size_t), ("first_invalid", c.c_size_t)]


class Failed(Exception):
    """A call that did not return BERT_OK; the message is libbert's."""


class Tokenizer:
    def __init__(self, library, path=None, files=None, tokenizer_json=False):
        """From a path, or from files: a dictionary of names and bytes."""
        self.lib = c.CDLL(library)
        self.lib.bert_tokens_at.restype = Encoding
        self.lib.bert_tokens_at.argtypes = [c.c_void_p, c.c_size_t, c.c_size_t]
        for name in ("bert_tokens_parts", "bert_tokenizer_decode", "bert_tokenizer_vocab_size"):
            getattr(self.lib, name).restype = c.c_size_t
        self.lib.bert_tokens_spelling.restype = c.c_void_p
        self.handle, self.tokens, self.err = c.c_void_p(), c.c_void_p(), Error()
        options = OpenOptions(c.sizeof(OpenOptions), None, None, tokenizer_json, 0)
        if files is None:
            code = self.lib.bert_tokenizer_open(c.byref(self.handle), path.encode(), c.byref(options), c.byref(self.err))
        else:
            array = (File * len(files))(*[File(n.encode(), d, len(d)) for n, d in files.items()])
            code = self.lib.bert_tokenizer_open_files(c.byref(self.handle), array, len(files), c.byref(options),
                                                      c.byref(self.err))
        self.check(code)

    def check(self, code):
        if code:
            raise Failed(self.err.text.decode())

    def close(self):
        self.lib.bert_tokens_close(c.byref(self.tokens))
        self.lib.bert_tokenizer_close(c.byref(self.handle))

    def spelling(self, i, part, token):
        n = c.c_size_t()
        at = self.lib.bert_tokens_spelling(self.tokens, c.c_size_t(i), c.c_size_t(part), c.c_size_t(token), c.byref(n))
        return c.string_at(at, n.value).decode()

    def part(self, i, part, spell):
        e = self.lib.bert_tokens_at(self.tokens, i, part)
        offsets = e.offsets_cp[:2 * e.n]
        row = {"ids": e.ids[:e.n], "type_ids": e.type_ids[:e.n], "special": e.special_tokens_mask[:e.n],
               "offsets": list(zip(offsets[::2], offsets[1::2])), "words": e.words[:e.n]}
        if spell:
            row["tokens"] = [self.spelling(i, part, k) for k in range(e.n)]
        return row

    def encode(self, texts, spell=False, **options):
        """texts: strings or pairs -> for each a list of parts."""
        values = Options(c.sizeof(Options), offsets_cp=1, overflow=1)
        for name, value in options.items():
            setattr(values, name, value)
        array = (Text * len(texts))()
        for i, text in enumerate(texts):
            a, b = text if isinstance(text, tuple) else (text, None)
            a = a.encode()
            array[i].a, array[i].a_len = a, len(a)
            if b is not None:
                b = b.encode()
                array[i].b, array[i].b_len = b, len(b)
        self.check(self.lib.bert_tokenize(c.byref(self.tokens), self.handle, array, c.c_size_t(len(texts)),
                                          c.byref(values), c.byref(self.err)))
        return [[self.part(i, p, spell) for p in range(self.lib.bert_tokens_parts(self.tokens, c.c_size_t(i)))]
                for i in range(len(texts))]

    def decode(self, ids, skip_special_tokens, clean_up):
        array, room = (c.c_int32 * len(ids))(*ids), 1 << 20
        text = c.create_string_buffer(room)
        n = self.lib.bert_tokenizer_decode(self.handle, text, c.c_size_t(room), array, c.c_size_t(len(ids)),
                                           int(skip_special_tokens), int(clean_up))
        return text.raw[:n].decode()
