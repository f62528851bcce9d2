"""What include/bert/*.h declares, for ctypes: as much of it as Python needs. tests/check_binding.py compiles a C program
that holds each structure, number and name here to the headers.

    lib = load("/path/to/libbert.so")
    lib.bert_version()
"""
import ctypes as c
import enum


class Status(enum.IntEnum):
    """bert_status"""
    OK, INVALID_ARGUMENT, NO_MEMORY, NOT_FOUND, IO, BAD_FILE, UNSUPPORTED, TOO_LONG, NOT_FINITE, CHANGED, STOPPED, \
        DEADLINE = range(12)


class Site(enum.IntEnum):
    """bert_site"""
    (HIDDEN_STATES, QUERY, KEY, VALUE, SCORES, WEIGHTS, CONTEXT, POOLER, WORD, POSITION, TYPE, VALUE_OUTPUT, HEAD_OUTPUT,
     ATTENTION_OUTPUT, ATTENTION_SUM, FFN_PRE, FFN_POST, FFN_OUTPUT, FFN_SUM) = range(19)


class Pooling(enum.IntEnum):
    """bert_pooling"""
    AUTO, CLS, MEAN, MAX, MEAN_SQRT_LEN, WEIGHTED_MEAN, LAST_TOKEN, POOLER = range(8)


class Error(c.Structure):
    _fields_ = [("code", c.c_int), ("text", c.c_char * 508)]


class Text(c.Structure):
    _fields_ = [("a", c.c_char_p), ("a_len", c.c_size_t), ("b", c.c_char_p), ("b_len", c.c_size_t)]


class File(c.Structure):
    _fields_ = [("name", c.c_char_p), ("data", c.c_char_p), ("len", c.c_size_t)]


NOTE = c.CFUNCTYPE(None, c.c_void_p, c.c_char_p)


class Notes(c.Structure):
    _fields_ = [("user", c.c_void_p), ("note", NOTE)]


class TokenizerOptions(c.Structure):
    _fields_ = [("size", c.c_size_t), ("memory", c.c_void_p), ("notes", c.POINTER(Notes)), ("tokenizer_json", c.c_int),
                ("strict", c.c_int)]


class TokenizeOptions(c.Structure):
    _fields_ = [("size", c.c_size_t), ("max_length", c.c_size_t), ("truncation", c.c_int), ("truncation_side", c.c_int),
                ("stride", c.c_size_t), ("overflow", c.c_int), ("no_special_tokens", c.c_int),
                ("literal_specials", c.c_int), ("padding", c.c_int), ("pad_length", c.c_size_t),
                ("pad_to_multiple", c.c_size_t), ("padding_side", c.c_int), ("offsets_cp", c.c_int)]


class Stretch(c.Structure):
    _fields_ = [("at", c.c_size_t), ("first", c.c_size_t), ("n", c.c_size_t)]


class Encoding(c.Structure):
    _fields_ = [("n", c.c_size_t), ("ids", c.c_void_p), ("type_ids", c.c_void_p), ("attention_mask", c.c_void_p),
                ("special_tokens_mask", c.c_void_p), ("offsets", c.c_void_p), ("offsets_cp", c.c_void_p),
                ("words", c.c_void_p), ("sequences", Stretch * 2), ("truncated", c.c_size_t), ("unknown", c.c_size_t),
                ("invalid_utf8", c.c_size_t), ("first_invalid", c.c_size_t)]


class ModelOptions(c.Structure):
    _fields_ = [("size", c.c_size_t), ("memory", c.c_void_p), ("notes", c.POINTER(Notes)), ("workers", c.c_void_p),
                ("gemm", c.c_void_p), ("isa", c.c_int), ("strict", c.c_int), ("max_memory", c.c_size_t),
                ("weights", c.c_int)]


class ModelInfo(c.Structure):
    _fields_ = [("vocab", c.c_size_t), ("hidden", c.c_size_t), ("layers", c.c_size_t), ("heads", c.c_size_t),
                ("head_size", c.c_size_t), ("intermediate", c.c_size_t), ("positions", c.c_size_t),
                ("types", c.c_size_t), ("layer_norm_eps", c.c_double), ("activation", c.c_int),
                ("hidden_act", c.c_char_p), ("model_type", c.c_char_p), ("pad_token_id", c.c_int32),
                ("has_pooler", c.c_int), ("is_decoder", c.c_int), ("cross_attention", c.c_int),
                ("parameters", c.c_size_t), ("isa", c.c_int), ("gemm", c.c_char_p)]


class PipelineOptions(c.Structure):
    _fields_ = [("size", c.c_size_t), ("model", c.POINTER(ModelOptions)), ("tokenizer", c.POINTER(TokenizerOptions))]


class PipelineInfo(c.Structure):
    _fields_ = [("pooling", c.c_int), ("pooling_assumed", c.c_int), ("normalize", c.c_int), ("dim", c.c_size_t),
                ("max_length", c.c_size_t), ("poolings", c.c_void_p), ("n_poolings", c.c_size_t),
                ("n_dense", c.c_size_t), ("lowercases", c.c_int), ("n_prompts", c.c_size_t),
                ("default_prompt", c.c_char_p)]


class SessionOptions(c.Structure):
    _fields_ = [("size", c.c_size_t), ("memory", c.c_void_p), ("workers", c.c_void_p), ("max_memory", c.c_size_t)]


class RunOptions(c.Structure):
    _fields_ = [("size", c.c_size_t), ("deadline_ns", c.c_int64), ("stop", c.c_void_p), ("first_layer", c.c_int32),
                ("hidden", c.c_void_p), ("memory", c.c_void_p), ("memory_start", c.c_void_p)]


class EmbedOptions(c.Structure):
    _fields_ = [("size", c.c_size_t), ("pooling", c.c_int), ("normalize", c.c_int), ("dim", c.c_size_t),
                ("max_length", c.c_size_t), ("truncation", c.c_int), ("truncation_side", c.c_int),
                ("literal_specials", c.c_int), ("pass_tokens", c.c_size_t), ("run", c.POINTER(RunOptions)),
                ("prompt_name", c.c_char_p), ("prompt", c.c_char_p), ("window", c.c_size_t), ("stride", c.c_size_t)]


class EmbedInfo(c.Structure):
    _fields_ = [("tokens", c.c_size_t), ("truncated", c.c_size_t), ("unknown", c.c_size_t),
                ("invalid_utf8", c.c_size_t), ("first_invalid", c.c_size_t), ("windows", c.c_size_t)]


class Batch(c.Structure):
    _fields_ = [("size", c.c_size_t), ("n", c.c_size_t), ("start", c.c_void_p), ("ids", c.c_void_p),
                ("types", c.c_void_p)]


class Tap(c.Structure):
    _fields_ = [("size", c.c_size_t), ("site", c.c_int32), ("layer", c.c_int32), ("head", c.c_int32),
                ("edit", c.c_int32), ("dst", c.c_void_p), ("dst_len", c.c_size_t), ("got", c.c_void_p),
                ("user", c.c_void_p)]


STRUCTURES = {
    "bert_error": Error, "bert_text": Text, "bert_file": File, "bert_notes": Notes,
    "bert_tokenizer_options": TokenizerOptions, "bert_tokenize_options": TokenizeOptions, "bert_stretch": Stretch,
    "bert_encoding": Encoding,
    "bert_model_options": ModelOptions, "bert_model_info": ModelInfo, "bert_pipeline_options": PipelineOptions,
    "bert_pipeline_info": PipelineInfo, "bert_session_options": SessionOptions, "bert_run_options": RunOptions,
    "bert_embed_options": EmbedOptions, "bert_embed_info": EmbedInfo, "bert_batch": Batch, "bert_tap": Tap,
}
ENUMS = {"BERT_": Status, "BERT_SITE_": Site, "BERT_POOLING_": Pooling}

_P, _SIZE, _PP, _ERR = c.c_void_p, c.c_size_t, c.POINTER(c.c_void_p), c.POINTER(Error)
FUNCTIONS = {  # what comes back, then the arguments
    "bert_version": (c.c_uint32,),
    "bert_numerics": (c.c_uint32,),
    "bert_pool_open": (c.c_int, _PP, c.c_int, _ERR),
    "bert_pool_workers": (_P, _P),
    "bert_pool_close": (None, _PP),
    "bert_tokenizer_open": (c.c_int, _PP, c.c_char_p, c.POINTER(TokenizerOptions), _ERR),
    "bert_tokenizer_open_files": (c.c_int, _PP, c.POINTER(File), _SIZE, c.POINTER(TokenizerOptions), _ERR),
    "bert_tokenizer_close": (None, _PP),
    "bert_tokenizer_vocab_size": (_SIZE, _P),
    "bert_tokenizer_decode": (_SIZE, _P, c.c_char_p, _SIZE, _P, _SIZE, c.c_int, c.c_int),
    "bert_tokenize": (c.c_int, _PP, _P, c.POINTER(Text), _SIZE, c.POINTER(TokenizeOptions), _ERR),
    "bert_tokens_parts": (_SIZE, _P, _SIZE),
    "bert_tokens_at": (Encoding, _P, _SIZE, _SIZE),
    "bert_tokens_spelling": (_P, _P, _SIZE, _SIZE, _SIZE, c.POINTER(_SIZE)),
    "bert_tokens_close": (None, _PP),
    "bert_model_prepare": (c.c_int, _P, _ERR),
    "bert_model_describe": (ModelInfo, _P),
    "bert_pipeline_open": (c.c_int, _PP, c.c_char_p, c.POINTER(PipelineOptions), _ERR),
    "bert_pipeline_model": (_P, _P),
    "bert_pipeline_tokenizer": (_P, _P),
    "bert_pipeline_describe": (PipelineInfo, _P),
    "bert_pipeline_dim": (_SIZE, _P, c.POINTER(EmbedOptions)),
    "bert_pipeline_close": (None, _PP),
    "bert_session_open": (c.c_int, _PP, _P, c.POINTER(SessionOptions), _ERR),
    "bert_session_close": (None, _PP),
    "bert_tap_size": (_SIZE, _P, c.POINTER(Batch), c.POINTER(Tap)),
    "bert_run": (c.c_int, _P, c.POINTER(Batch), c.POINTER(Tap), _SIZE, c.POINTER(RunOptions), _ERR),
    "bert_embed": (c.c_int, _P, _P, _P, c.POINTER(Text), _SIZE, c.POINTER(EmbedOptions), c.POINTER(EmbedInfo), _ERR),
}


def sized(kind, **values):
    """An options structure; what is not given is 0, as nearly all defaults are. The library takes a structure that ends
    before its own, so what a newer header has behind may be missing here."""
    return kind(c.sizeof(kind), **values)


def load(path):
    lib = c.CDLL(path)   # which lets other Python threads run during a call
    for name, (result, *arguments) in FUNCTIONS.items():
        function = getattr(lib, name)
        function.restype, function.argtypes = result, arguments
    return lib
