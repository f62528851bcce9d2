"""Everyone who runs in a benchmark, behind the same three calls.

    peer = PEERS[name](model, cache, threads, library)
    ready = peer.prepare(ids, lengths)      ids [B,T], padded on the right; lengths [B]
    result = peer.run(ready)                the forward pass, and nothing else
    peer.hidden(result)                     numpy [B,T,H]; rows of padding are anything
All in float32: a CPU with AMX must not be let into bfloat16, which OpenVINO would be by itself. Nobody runs the pooler.
"""
import numpy as np

import graph


def mask_of(ids, lengths):
    return (np.arange(ids.shape[1])[None, :] < np.asarray(lengths)[:, None]).astype(np.int64)


class Ours:
    def __init__(self, model, _cache, threads, library):
        import libbert
        self.libbert = libbert
        self.pipeline = libbert.Pipeline(library, model, threads)
        config = graph.config_of(model)
        self.hidden_size, self.layers = config["hidden_size"], config["num_hidden_layers"]
        version = self.pipeline.lib.bert_version()
        self.version = f"libbert {version >> 16}.{version >> 8 & 255}.{version & 255}"

    def prepare(self, ids, lengths):
        shape = (int(np.sum(lengths)), self.hidden_size)
        return self.libbert.Pass(ids, lengths, self.libbert.HIDDEN_STATES, self.layers, shape), ids.shape

    def run(self, ready):
        one, shape = ready
        return self.pipeline.run(one), one, shape

    def hidden(self, result):
        dst, one, (batch, length) = result
        padded = np.zeros((batch, length, self.hidden_size), np.float32)
        for i, (start, end) in enumerate(zip(one.start, one.start[1:])):
            padded[i, :end - start] = dst[start:end]
        return padded


class OnnxRuntime:
    """The graph that is fused by hand."""
    graph = staticmethod(graph.fused)

    def __init__(self, model, cache, threads, _library):
        import onnxruntime
        options = onnxruntime.SessionOptions()
        options.intra_op_num_threads = threads
        options.inter_op_num_threads = 1
        options.graph_optimization_level = onnxruntime.GraphOptimizationLevel.ORT_ENABLE_ALL
        options.log_severity_level = 3
        self.session = onnxruntime.InferenceSession(self.graph(model, cache), options,
                                                    providers=["CPUExecutionProvider"])
        self.version = f"onnxruntime {onnxruntime.__version__}"

    def prepare(self, ids, lengths):
        ids = ids.astype(np.int32)
        return {"input_ids": ids, "types": np.zeros_like(ids), "lengths": np.asarray(lengths, np.int32)}

    def run(self, ready):
        return self.session.run(None, ready)[0]

    def hidden(self, result):
        return result


class OnnxRuntimeExport(OnnxRuntime):
    """The export behind ONNX Runtime's own optimizer."""
    graph = staticmethod(graph.optimized)

    def prepare(self, ids, lengths):
        return {"input_ids": ids.astype(np.int64), "attention_mask": mask_of(ids, lengths)}


class Torch:
    attention = "sdpa"

    def __init__(self, model, _cache, threads, _library):
        import torch
        import transformers
        torch.set_num_threads(threads)
        torch.set_float32_matmul_precision("highest")
        self.torch, self.model = torch, graph.hugging_face(model, self.attention)
        self.version = f"torch {torch.__version__}, transformers {transformers.__version__}"

    def prepare(self, ids, lengths):
        mask = mask_of(ids, lengths)
        ready = {"input_ids": self.torch.from_numpy(ids.astype(np.int64))}
        if not mask.all():
            ready["attention_mask"] = self.torch.from_numpy(mask)
        return ready

    def run(self, ready):
        with self.torch.inference_mode():
            return self.model(**ready)

    def hidden(self, result):
        return result.last_hidden_state.numpy()


class TorchEager(Torch):
    """The only one of them that gives attention maps."""
    attention = "eager"


class OpenVino:
    def __init__(self, model, cache, threads, _library):
        import openvino
        core = openvino.Core()
        settings = {"INFERENCE_NUM_THREADS": threads, "NUM_STREAMS": 1, "PERFORMANCE_HINT": "LATENCY",
                    "INFERENCE_PRECISION_HINT": "f32", "ENABLE_CPU_PINNING": False}
        compiled = core.compile_model(core.read_model(graph.exported(model, cache)), "CPU", settings)
        precision = compiled.get_property("INFERENCE_PRECISION_HINT").get_type_name()
        if precision != "f32":
            raise SystemExit(f"OpenVINO would run in {precision}")
        self.request = compiled.create_infer_request()
        self.version = f"openvino {openvino.__version__.split('-')[0]}"

    def prepare(self, ids, lengths):
        return {"input_ids": ids.astype(np.int64), "attention_mask": mask_of(ids, lengths)}

    def run(self, ready):
        return self.request.infer(ready, share_inputs=True, share_outputs=True)[0]

    def hidden(self, result):
        return np.array(result)


class CTranslate2:
    def __init__(self, model, cache, threads, _library):
        import ctranslate2
        self.ctranslate2 = ctranslate2
        self.encoder = ctranslate2.Encoder(graph.converted(model, cache), device="cpu", compute_type="float32",
                                           inter_threads=1, intra_threads=threads)
        if self.encoder.compute_type != "float32":
            raise SystemExit(f"CTranslate2 would run in {self.encoder.compute_type}")
        self.version = f"ctranslate2 {ctranslate2.__version__}"

    def prepare(self, ids, lengths):
        view = self.ctranslate2.StorageView.from_array
        return view(np.ascontiguousarray(ids, np.int32)), view(np.asarray(lengths, np.int32))

    def run(self, ready):
        return self.encoder.forward_batch(*ready).last_hidden_state

    def hidden(self, result):
        return np.array(result)


PEERS = {"libbert": Ours, "ort": OnnxRuntime, "ort-export": OnnxRuntimeExport, "torch": Torch,
         "torch-eager": TorchEager, "openvino": OpenVino, "ctranslate2": CTranslate2}
