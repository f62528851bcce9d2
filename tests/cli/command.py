"""Running the command, and reading what it writes with nothing but the standard library."""
import ast
import io
import json
import os
import pathlib
import struct
import subprocess
import sys
import tempfile
import unittest
import zipfile

BERT = os.environ.get("BERT", "build/tools/bert")
DATA = pathlib.Path(os.environ.get("BERT_TEST_DATA", pathlib.Path(__file__).resolve().parent.parent / "data"))
TINY = str(DATA / "models" / "tiny-bert")
FOX = "The quick brown fox jumps over the lazy dog."


def model(name):
    return str(DATA / "models" / name)


def real_model(name):
    """Its folder; the test is skipped where there is none."""
    for root in (os.environ.get("BERT_TEST_MODELS"), os.environ.get("BERT_TEST_SOURCE_MODELS")):
        if root and (pathlib.Path(root) / name / "model.safetensors").exists():
            return str(pathlib.Path(root) / name)
    raise unittest.SkipTest(f"{name} is not here")


def environment(perturbed=True):
    """meson has the C library fill memory, to show what is read too early; where memory is measured it would count."""
    env = {k: v for k, v in os.environ.items() if not k.startswith("BERT") and (perturbed or k != "MALLOC_PERTURB_")}
    env.setdefault("ASAN_OPTIONS", "detect_leaks=1")
    return env


def bert(*args, stdin=b"", check=None, env=None, timeout=60):
    """Runs it; `check` is the exit status that is expected."""
    if isinstance(stdin, str):
        stdin = stdin.encode()
    done = subprocess.run([BERT, *args], input=stdin, capture_output=True, env=env or environment(), timeout=timeout)
    if check is not None and done.returncode != check:
        raise AssertionError(f"bert {' '.join(args)[:300]}: exit {done.returncode}, expected {check}\n{done.stderr.decode()[-2000:]}")
    return done


# A process begins with the peak memory of the one that started it: between this one, large by now, and bert a small one.
MEASURE = """import os, resource, sys
status = os.spawnv(os.P_WAIT, sys.argv[2], sys.argv[2:])
used = resource.getrusage(resource.RUSAGE_CHILDREN)
open(sys.argv[1], "w").write(f"{used.ru_utime} {used.ru_maxrss * 1024}")
os._exit(status)"""


def measured(report, *args):
    """The command that runs bert and leaves seconds of processor time and bytes of peak memory in the file `report`."""
    return [sys.executable, "-S", "-E", "-c", MEASURE, str(report), BERT, *args]


def cost(report):
    seconds, peak = pathlib.Path(report).read_text().split()
    return float(seconds), int(peak)


def lines(done):
    return [json.loads(line) for line in done.stdout.decode().splitlines()]


class Array:
    """Shape and flat values."""

    def __init__(self, shape, values):
        self.shape, self.values = tuple(shape), values

    def __eq__(self, other):
        return self.shape == other.shape and self.values == other.values

    def rows(self):
        width = self.shape[-1]
        return [self.values[i:i + width] for i in range(0, len(self.values), width)]


def npy(data):
    assert data[:8] == b"\x93NUMPY\x01\x00", data[:8]
    length = struct.unpack("<H", data[8:10])[0]
    assert (10 + length) % 64 == 0
    header = ast.literal_eval(data[10:10 + length].decode())
    assert header["fortran_order"] is False
    shape, kind, body = header["shape"], header["descr"], data[10 + length:]
    count = 1
    for n in shape:
        count *= n
    if kind.startswith("<U"):
        assert shape == () and len(body) == 4 * int(kind[2:])
        return body.decode("utf-32-le").rstrip("\0")
    code, size = {"<f4": ("f", 4), "<i8": ("q", 8)}[kind]
    assert len(body) == count * size, (len(body), shape)
    return Array(shape, list(struct.unpack(f"<{count}{code}", body)))


def write_npy(path, shape, values, code="f"):
    header = f"{{'descr': '<{'f4' if code == 'f' else 'f8'}', 'fortran_order': False, 'shape': {shape}, }}"
    header += " " * (-(len(header) + 11) % 64) + "\n"
    body = struct.pack(f"<{len(values)}{code}", *values)
    path.write_bytes(b"\x93NUMPY\x01\x00" + struct.pack("<H", len(header)) + header.encode() + body)
    return str(path)


def npz(data):
    with zipfile.ZipFile(io.BytesIO(data)) as archive:
        assert archive.testzip() is None
        return {name[:-4]: npy(archive.read(name)) for name in archive.namelist()}


def safetensors(data):
    """Tensors and metadata; the format's rules are asserted."""
    n = struct.unpack("<Q", data[:8])[0]
    header, body = json.loads(data[8:8 + n]), data[8 + n:]
    metadata, tensors, spans = header.pop("__metadata__", {}), {}, []
    for name, entry in header.items():
        begin, end = entry["data_offsets"]
        count = 1
        for d in entry["shape"]:
            count *= d
        code, size = {"F32": ("f", 4), "I64": ("q", 8), "F64": ("d", 8)}[entry["dtype"]]
        assert end - begin == count * size and (8 + n + begin) % size == 0
        spans.append((begin, end))
        tensors[name] = Array(entry["shape"], list(struct.unpack(f"<{count}{code}", body[begin:end])))
    at = 0
    for begin, end in sorted(spans):
        assert begin == at
        at = end
    assert at == len(body)
    return tensors, metadata


def float32(x):
    return struct.unpack("<f", struct.pack("<f", x))[0]


class Case(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = pathlib.Path(folder.name)

    def refused(self, status, expected, *args, stdin=b""):
        """One line that begins with "bert: " and holds what is expected, nothing on stdout."""
        done = bert(*args, stdin=stdin, check=status)
        said = done.stderr.decode()
        self.assertEqual(done.stdout, b"")
        self.assertRegex(said, expected)
        self.assertTrue(said.startswith("bert: ") and said.endswith("\n") and said.count("\n") == 1, said)
        return said
