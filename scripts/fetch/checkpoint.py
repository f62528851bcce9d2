"""A TensorFlow SavedModel's variables as a safetensors file, with the standard library alone.

Formats: variables.index is a LevelDB table (leveldb/doc/table_format.md) of protocol buffers (BundleEntryProto in
tensorflow/core/protobuf/tensor_bundle.proto); variables.data holds the values, little-endian.
"""
import array
import json
import os
import re
import struct

from .common import Failure

FLOAT = 1  # DT_FLOAT
FOOTER = 48


def varint(data, at):
    value = shift = 0
    while True:
        byte = data[at]
        at, value, shift = at + 1, value | (byte & 127) << shift, shift + 7
        if byte < 128:
            return value, at


def table_block(index, offset, size):
    """(key, value) of one block: each key shares a prefix with the one before; restart points end the block."""
    block = index[offset:offset + size]
    restarts = struct.unpack("<I", block[-4:])[0]
    end, at, key = len(block) - 4 - 4 * restarts, 0, b""
    while at < end:
        shared, at = varint(block, at)
        fresh, at = varint(block, at)
        length, at = varint(block, at)
        key = key[:shared] + block[at:at + fresh]
        yield key, block[at + fresh:at + fresh + length]
        at += fresh + length


def message(data):
    """{field: [values]} of a protocol buffer; nested messages stay bytes."""
    fields, at = {}, 0
    while at < len(data):
        tag, at = varint(data, at)
        field, wire = tag >> 3, tag & 7
        if wire == 0:
            value, at = varint(data, at)
        else:
            length, at = varint(data, at) if wire == 2 else ({5: 4, 1: 8}[wire], at)
            value, at = data[at:at + length], at + length
        fields.setdefault(field, []).append(value)
    return fields


def variables(index):
    """(name, shape, offset, bytes) of each variable, from the bytes of variables.index."""
    footer, at = index[-FOOTER:], 0
    for _ in range(2):  # the meta index block is not needed
        _, at = varint(footer, at)
    offset, at = varint(footer, at)
    size, at = varint(footer, at)
    for _, handle in table_block(index, offset, size):
        block_offset, at = varint(handle, 0)
        block_size, at = varint(handle, at)
        for key, value in table_block(index, block_offset, block_size):
            if key:  # the empty key is the header of the whole bundle
                yield (key.decode(), *bundle_entry(message(value)))


def bundle_entry(entry):
    if entry.get(1) != [FLOAT]:
        raise Failure(f"variables.index: expected float variables, found type {entry.get(1)}")
    shape = [message(dim)[1][0] for dim in message(entry[2][0])[2]]
    return shape, entry.get(4, [0])[0], entry[5][0]


def hub_name(variable):
    """The name under which the hub's own file has this variable."""
    name = variable.removeprefix("module/")
    if name == "cls/predictions/output_bias":
        return "cls.predictions.bias"
    name = re.sub(r"layer_(\d+)", r"layer.\1", name).replace("/", ".")
    name = re.sub(r"((word|position|token_type)_embeddings)$", r"\1.weight", name)
    return re.sub(r"\.kernel$", ".weight", name)


def transposed(data, rows, columns):
    """[rows, columns] floats to [columns, rows]. Slices with a stride are copied in C: 85 million in seconds."""
    values = array.array("I", data)  # as integers: no bit of a float may change
    return b"".join(values[column::columns].tobytes() for column in range(columns))


def write_safetensors(path, index, data):
    """`data` is an open file of values. The same bytes as the safetensors package would write."""
    tensors = {hub_name(name): (name, shape, offset, size) for name, shape, offset, size in variables(index)}
    header, end = {"__metadata__": {"format": "pt"}}, 0
    for name in sorted(tensors):
        variable, shape, _, size = tensors[name]
        shape = shape[::-1] if variable.endswith("/kernel") else shape
        header[name] = {"dtype": "F32", "shape": shape, "data_offsets": [end, end + size]}
        end += size
    text = json.dumps(header, separators=(",", ":")).encode()
    text += b" " * (-len(text) % 8)
    with open(path, "wb") as file:
        file.write(struct.pack("<Q", len(text)) + text)
        for name in sorted(tensors):
            variable, shape, offset, size = tensors[name]
            data.seek(offset)
            value = data.read(size)
            file.write(transposed(value, *shape) if variable.endswith("/kernel") else value)
        file.flush()
        os.fsync(file.fileno())
