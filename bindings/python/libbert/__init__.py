"""BERT encoders by libbert: vectors, tokens, attention and hidden states as numpy arrays.

    import libbert
    with libbert.Model("models/all-MiniLM-L6-v2") as model:
        vectors = model.encode(["A fox jumps.", "Rates rise."])    # [2, 384]
        attention = model.attention("A fox jumps.")                # for each layer [1, heads, T, T]
"""
import importlib.metadata

from ._c import Status
from ._library import BertError, BertWarning, numerics, version
from .model import Model
from .tokens import Tokens

__all__ = ["BertError", "BertWarning", "Model", "Status", "Tokens", "numerics", "version"]
__version__ = importlib.metadata.version("libbert")
