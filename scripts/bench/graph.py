"""The graphs that the peers run, made once a model and kept: an export of Hugging Face's, ONNX Runtime's optimized form
of it, the same fused by hand where that optimizer no longer finds attention, and CTranslate2's conversion."""
import json
import pathlib
import shutil
import tempfile

import numpy as np


def config_of(model):
    return json.loads(pathlib.Path(model, "config.json").read_text())


def _once(path, make):
    """path, made by make(temporary path) unless it is there."""
    path = pathlib.Path(path)
    if not path.exists():
        path.parent.mkdir(parents=True, exist_ok=True)
        unfinished = path.with_name("new-" + path.name)
        shutil.rmtree(unfinished, ignore_errors=True)
        make(str(unfinished))
        unfinished.rename(path)
    return str(path)


def hugging_face(model, attention="sdpa"):
    import transformers
    transformers.logging.set_verbosity_error()
    transformers.utils.logging.disable_progress_bar()
    return transformers.BertModel.from_pretrained(model, add_pooling_layer=False, attn_implementation=attention).eval()


def exported(model, cache):
    """torch.onnx's export; inputs input_ids and attention_mask [B,T]."""
    def make(path):
        import torch

        class Hidden(torch.nn.Module):
            def __init__(self):
                super().__init__()
                self.bert = hugging_face(model, "eager")

            def forward(self, input_ids, attention_mask):
                return self.bert(input_ids=input_ids, attention_mask=attention_mask).last_hidden_state

        ids = torch.randint(1000, 20000, (2, 16))
        dim = {0: torch.export.Dim("batch", min=1, max=4096), 1: torch.export.Dim("tokens", min=2, max=512)}
        torch.onnx.export(Hidden().eval(), (ids, torch.ones_like(ids)), path,
                          input_names=["input_ids", "attention_mask"], output_names=["last_hidden_state"],
                          dynamic_shapes=(dim, dim), dynamo=True, opset_version=18, external_data=False, verbose=False)
    return _once(pathlib.Path(cache, "exported.onnx"), make)


def optimized(model, cache):
    """The export behind ONNX Runtime's transformer optimizer."""
    def make(path):
        from onnxruntime.transformers import optimizer
        config = config_of(model)
        graph = optimizer.optimize_model(exported(model, cache), model_type="bert", opt_level=1, use_gpu=False,
                                         num_heads=config["num_attention_heads"], hidden_size=config["hidden_size"])
        graph.save_model_to_file(path)
    return _once(pathlib.Path(cache, "optimized.onnx"), make)


def _weights(model):
    from safetensors.numpy import load_file
    renamed = {}
    for name, value in load_file(str(pathlib.Path(model, "model.safetensors"))).items():
        name = name.removeprefix("bert.").replace("gamma", "weight").replace("beta", "bias")
        renamed[name] = value
    return renamed


class _Builder:
    def __init__(self):
        self.nodes, self.initializers = [], []

    def weight(self, name, value):
        from onnx import numpy_helper
        self.initializers.append(numpy_helper.from_array(np.ascontiguousarray(value), name))
        return name

    def node(self, kind, inputs, name, domain="", **attributes):
        from onnx import helper
        self.nodes.append(helper.make_node(kind, inputs, [name], name=name, domain=domain, **attributes))
        return name


def _layer(b, w, n, x, heads, eps):
    """One layer in the fused operators that ONNX Runtime has for it."""
    prefix = f"encoder.layer.{n}."
    qkv = [prefix + f"attention.self.{part}" for part in ("query", "key", "value")]
    fused = {"domain": "com.microsoft"}

    def dense(name, x):
        return b.node("MatMul", [x, b.weight(name, w[name + ".weight"].T)], f"{name}.product")

    def bias(name):
        return b.weight(name + ".bias", w[name + ".bias"])

    def add_and_norm(name, product, skip):
        norm = prefix + name + ".LayerNorm"
        return b.node("SkipLayerNormalization", [product, skip, b.weight(norm, w[norm + ".weight"]), bias(norm),
                                                 bias(prefix + name + ".dense")], norm + ".out", epsilon=eps, **fused)

    weights = b.weight(prefix + "qkv", np.concatenate([w[q + ".weight"].T for q in qkv], axis=1))
    biases = b.weight(prefix + "qkv.bias", np.concatenate([w[q + ".bias"] for q in qkv]))
    y = b.node("Attention", [x, weights, biases, "lengths"], prefix + "attention", num_heads=heads, **fused)
    x = add_and_norm("attention.output", dense(prefix + "attention.output.dense", y), x)
    y = dense(prefix + "intermediate.dense", x)
    y = b.node("BiasGelu", [y, bias(prefix + "intermediate.dense")], prefix + "gelu", **fused)
    return add_and_norm("output", dense(prefix + "output.dense", y), x)


def fused(model, cache):
    """EmbedLayerNormalization, Attention, SkipLayerNormalization, BiasGelu; inputs input_ids [B,T], lengths [B]."""
    def make(path):
        import onnx
        from onnx import TensorProto, helper
        config, w, b = config_of(model), _weights(model), _Builder()
        if config["hidden_act"] != "gelu":
            raise SystemExit(f"{model}: BiasGelu is gelu, found {config['hidden_act']}")
        eps = config["layer_norm_eps"]
        names = ["word_embeddings", "position_embeddings", "token_type_embeddings"]
        tables = [b.weight(name, w[f"embeddings.{name}.weight"]) for name in names]
        norm = [b.weight("norm." + part, w["embeddings.LayerNorm." + part]) for part in ("weight", "bias")]
        b.nodes.append(helper.make_node("EmbedLayerNormalization", ["input_ids", "types", *tables, *norm],
                                        ["embedded", "no_mask"], domain="com.microsoft", epsilon=eps))
        x = "embedded"
        for n in range(config["num_hidden_layers"]):
            x = _layer(b, w, n, x, config["num_attention_heads"], eps)
        b.node("Identity", [x], "last_hidden_state")
        inputs = [helper.make_tensor_value_info("input_ids", TensorProto.INT32, ["B", "T"]),
                  helper.make_tensor_value_info("types", TensorProto.INT32, ["B", "T"]),
                  helper.make_tensor_value_info("lengths", TensorProto.INT32, ["B"])]
        output = helper.make_tensor_value_info("last_hidden_state", TensorProto.FLOAT,
                                               ["B", "T", config["hidden_size"]])
        graph = helper.make_graph(b.nodes, "bert", inputs, [output], b.initializers)
        opsets = [helper.make_opsetid("", 18), helper.make_opsetid("com.microsoft", 1)]
        onnx.save(helper.make_model(graph, opset_imports=opsets, ir_version=10), path)
    return _once(pathlib.Path(cache, "fused.onnx"), make)


def converted(model, cache):
    """CTranslate2's, float32."""
    def make(path):
        import ctranslate2
        with tempfile.TemporaryDirectory() as folder:   # its converter insists on a key that newer files leave out
            for file in pathlib.Path(model).resolve().iterdir():
                pathlib.Path(folder, file.name).symlink_to(file)
            config = pathlib.Path(folder, "config.json")
            config.unlink()
            config.write_text(json.dumps({"position_embedding_type": "absolute", **config_of(model)}))
            ctranslate2.converters.TransformersConverter(folder).convert(path)
    return _once(pathlib.Path(cache, "ctranslate2"), make)
