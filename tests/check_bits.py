#!/usr/bin/env python3
"""The same-bits promise, end to end: hidden states, attention weights and sentence vectors of 200 mixed texts.

    check_bits.py BITS_PROGRAM [--record]

Runs the program bits in every arrangement and compares the SHA-256 of what it writes with tests/data/bits/sums.txt:
every instruction set of this machine, threads 1, 2, 3, 8, texts in any order, alone or packed together, maps taken or
not, weights packed or from the file, and libm's fma in software. The tiny models always; all-MiniLM-L6-v2 where its
weights are ($BERT_TEST_MODELS or models/): all texts, and for the slow ways its 12 shortest. --record writes the sums.
"""
import hashlib
import os
import pathlib
import subprocess
import sys

HERE = pathlib.Path(__file__).resolve().parent
DATA = HERE / "data"
TEXTS = DATA / "bits" / "texts.jsonl"
SUMS = DATA / "bits" / "sums.txt"
TINY = ["tiny-bert", "tiny-bert-head32", "tiny-bert-f16", "tiny-bert-gelu-new", "tiny-bert-relu"]
SOFTWARE_FMA = {"GLIBC_TUNABLES": "glibc.cpu.hwcaps=-FMA,-FMA4,-AVX2"}
EMULATOR = os.environ.get("BERT_TEST_EMULATOR", "").split()


def run(program, model, *arguments, env=None):
    """SHA-256 of what the program writes, None where this machine lacks the instruction set."""
    command = [*EMULATOR, program, str(model), str(TEXTS), *arguments]
    with subprocess.Popen(command, stdout=subprocess.PIPE, env={**os.environ, **(env or {})}) as process:
        digest = hashlib.sha256()
        while block := process.stdout.read(1 << 20):
            digest.update(block)
    if process.returncode != 0:
        raise SystemExit(f"{' '.join(command)}: exit {process.returncode}")
    return digest.hexdigest()


def isas(program):
    return subprocess.run([*EMULATOR, program, "isas"], stdout=subprocess.PIPE, check=True, text=True).stdout.split()


def real_model():
    for root in (os.environ.get("BERT_TEST_MODELS"), os.environ.get("BERT_TEST_SOURCE_MODELS"), HERE.parent / "models"):
        folder = pathlib.Path(root, "all-MiniLM-L6-v2") if root else None
        if folder and (folder / "model.safetensors").exists():
            return folder
    return None


def arrangements(fast):
    """What may differ without a bit differing."""
    yield from ([f"isa={isa}"] for isa in fast)
    yield [f"isa={fast[0]}", "threads=2", "order=alone"]
    yield [f"isa={fast[-1]}", "threads=3", "order=reverse", "maps=1"]
    yield [f"isa={fast[-1]}", "threads=8", "weights=file"]


def plan(program):
    """(name of the sum, model, arguments, environment) of every run. What is slow gets the 12 shortest texts: ref, libm's
    fma in software (of a real model only under BERT_TEST_SLOW), sanitizers (BERT_TEST_QUICK) and emulators."""
    fast = [isa for isa in isas(program) if isa != "ref"] or ["ref"]
    quick = EMULATOR or os.environ.get("BERT_TEST_QUICK")
    without_fma = {"tiny-bert", "all-MiniLM-L6-v2" if os.environ.get("BERT_TEST_SLOW") else "tiny-bert"}
    real = real_model()
    if real is None:
        print("all-MiniLM-L6-v2: its weights are not on this machine")
    models = {name: DATA / "models" / name for name in TINY} | ({"all-MiniLM-L6-v2": real} if real else {})
    for name, model in models.items():
        if os.environ.get("BERT_TEST_QUICK") and model == real:
            continue
        for arguments in arrangements(fast):
            yield name + (" 12 shortest" if quick else ""), model, arguments + (["shortest=12"] if quick else []), None
        yield f"{name} 12 shortest", model, ["isa=ref", "shortest=12"], None
        if not quick and name in without_fma:
            yield f"{name} 12 shortest", model, ["isa=ref", "shortest=12", "threads=2"], SOFTWARE_FMA
    if not quick:
        yield "tiny-bert", models["tiny-bert"], ["isa=ref", "order=alone", "weights=file"], None


def read_sums():
    rows = (line.rsplit(" ", 1) for line in SUMS.read_text().splitlines() if line)
    return {name: digest for name, digest in rows}


def main():
    program, record = sys.argv[1], "--record" in sys.argv
    sums = {} if record else read_sums()
    passed = failed = 0
    for name, model, arguments, env in plan(program):
        digest = run(program, model, *arguments, env=env)
        expected = sums.setdefault(name, digest) if record else sums.get(name)
        how = " ".join(arguments) + (" fma in software" if env else "")
        if digest == expected:
            passed += 1
        else:
            failed += 1
            print(f"{name}: {how}: SHA-256 {digest}, expected {expected}")
    if record and not failed:
        SUMS.write_text("".join(f"{name} {digest}\n" for name, digest in sorted(sums.items())))
    print(f"{passed} passed, {failed} failed")
    return failed > 0


if __name__ == "__main__":
    sys.exit(main())
