"""What one writes to get one vector: one_sentence.py onnxruntime|transformers MODEL CACHE SENTENCE."""
import pathlib
import sys


def tokenizer_of(model):
    import tokenizers
    if pathlib.Path(model, "tokenizer.json").exists():
        tokenizer = tokenizers.Tokenizer.from_file(str(pathlib.Path(model, "tokenizer.json")))
        tokenizer.no_padding()
        return tokenizer
    return tokenizers.BertWordPieceTokenizer(str(pathlib.Path(model, "vocab.txt")), lowercase=True)


def with_onnxruntime(model, cache, sentence):
    import numpy as np
    import onnxruntime
    ids = np.array([tokenizer_of(model).encode(sentence).ids], np.int32)
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = 1
    session = onnxruntime.InferenceSession(str(pathlib.Path(cache, "fused.onnx")), options,
                                           providers=["CPUExecutionProvider"])
    inputs = {"input_ids": ids, "types": np.zeros_like(ids), "lengths": np.array([ids.shape[1]], np.int32)}
    return session.run(None, inputs)[0][0].mean(0)


def with_transformers(model, _cache, sentence):
    import torch
    import transformers
    transformers.utils.logging.disable_progress_bar()
    tokenizer = transformers.AutoTokenizer.from_pretrained(model)
    bert = transformers.AutoModel.from_pretrained(model).eval()
    with torch.inference_mode():
        return bert(**tokenizer(sentence, return_tensors="pt")).last_hidden_state[0].mean(0).numpy()


if __name__ == "__main__":
    who, *arguments = sys.argv[1:]
    vector = {"onnxruntime": with_onnxruntime, "transformers": with_transformers}[who](*arguments)
    print(" ".join(map(str, vector)))
