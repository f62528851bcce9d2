"""libbert beside its peers (scripts/bench_peers calls this, and says how)."""
import argparse
import json
import os
import pathlib
import statistics
import subprocess
import sys
import tempfile
import time
from importlib import metadata

import numpy as np

import inputs
import report

TOLERANCE = 5e-4    # of hidden states; float32 is within 1e-4 of any other float32, bfloat16 is past 1e-2
SENTENCE = "The quick brown fox jumps over the lazy dog."
HERE = pathlib.Path(__file__).resolve().parent


def check(workers, what, ask):
    """Everyone's result against ours, before anything is timed: {peer: largest difference}."""
    differences = {}
    with tempfile.TemporaryDirectory() as folder:
        for peer, worker in workers.items():
            ask(worker, str(pathlib.Path(folder, peer + ".npy")))
        ours = np.load(pathlib.Path(folder, "libbert.npy"))
        for peer in workers:
            theirs = np.load(pathlib.Path(folder, peer + ".npy"))
            differences[peer] = float(np.abs(theirs - ours).max()) if theirs.shape == ours.shape else float("inf")
    report.progress(f"{what}: largest differences " + ", ".join(f"{p} {d:.1e}" for p, d in differences.items()))
    wrong = [peer for peer, difference in differences.items() if not difference <= TOLERANCE]
    if wrong:
        raise SystemExit(f"bench_peers: {what}: {', '.join(wrong)}: more than {TOLERANCE} away: not the same model")
    return differences


def shape_cells(args, model, threads, versions):
    """One row for each shape: medians, and the fastest peer's beside ours."""
    workers, found = report.start(["libbert", *args.peers], model, args, threads)
    versions.update(found)
    name = pathlib.Path(model).name
    for batch, length in args.shapes:
        differences = check(workers, f"{name} {batch}x{length}",
                            lambda w, path: w.do("output", batch=batch, length=length, path=path))
        bodies = {peer: (lambda w=w: w.do("time", batch=batch, length=length, at_least=args.at_least))
                  for peer, w in workers.items()}
        times = report.rounds(bodies, args.rounds)
        best = report.medians(times)
        peer = min(args.peers, key=best.get)
        yield {"model": name, "threads": threads, "batch": batch, "length": length, "seconds": best, "rounds": times,
               "fastest_peer": peer, "ratio": best[peer] / best["libbert"], "differences": differences}
    for worker in workers.values():
        worker.close()


def shapes(args):
    cells, versions, here = [], {}, report.machine()
    for model in args.model:
        for threads in args.threads:
            cells += shape_cells(args, model, threads, versions)
            report.save(args, "shapes", {"machine": here, "versions": versions, "cells": cells})
    report.describe(here, versions)
    print(f"Medians of {args.rounds} interleaved rounds, ms. Ratio: the fastest peer's time by ours.")
    rows = [[c["model"], str(c["threads"]), f"{c['batch']}×{c['length']}",
             *(report.number(1e3 * c["seconds"][p]) for p in ["libbert", *args.peers]),
             f"{c['ratio']:.2f} ({c['fastest_peer']})"] for c in cells]
    report.table(["model", "threads", "batch×length", "libbert", *args.peers, "ratio"], rows)
    for model in dict.fromkeys(c["model"] for c in cells):
        ratios = [c["ratio"] for c in cells if c["model"] == model]
        print(f"{model}: geometric mean {report.geometric_mean(ratios):.3f}, lowest {min(ratios):.3f} "
              f"({sum(r < 1 for r in ratios)} of {len(ratios)} cells below 1)")


BATCHINGS = {"sorted 8": (8, True), "sorted 1": (1, True), "sorted 32": (32, True), "unsorted 32": (32, False)}


def mixed(args):
    """Texts of mixed length; each peer with each batching, ours in order of arrival with tokenizing included."""
    n, model, here = args.texts, args.model[0], report.machine()
    workers, versions = report.start(["libbert", *args.peers], model, args, 1)
    lengths = inputs.mixed_lengths(n)
    check(workers, f"{n} mixed texts",
          lambda w, path: w.do("mixed", n=n, batch=0 if w.peer == "libbert" else 8, by_length=True, path=path))
    ours = "libbert, arrival order"
    bodies = {ours: lambda: workers["libbert"].do("mixed", n=n, batch=0, by_length=False)}
    for peer in args.peers:
        for name, (batch, by_length) in BATCHINGS.items():
            bodies[f"{peer}, {name}"] = lambda w=workers[peer], b=batch, s=by_length: w.do("mixed", n=n, batch=b,
                                                                                          by_length=s)
    report.rounds({who: bodies[who] for who in bodies if "sorted 8" in who or who == ours}, 1)  # warms up
    first = report.medians(report.rounds(bodies, 1))
    chosen = [ours, *(min((who for who in bodies if who.startswith(peer + ", ")), key=first.get)
                      for peer in args.peers)]
    times = report.rounds({who: bodies[who] for who in chosen}, args.rounds)
    for worker in workers.values():
        worker.close()
    best, tokens = report.medians(times), int(lengths.sum())
    peer = min(chosen[1:], key=best.get)
    report.save(args, "mixed", {"machine": here, "versions": versions, "texts": n, "tokens": tokens, "first": first,
                                "rounds": times, "seconds": best, "fastest_peer": peer,
                                "ratio": best[peer] / best[ours]})
    report.describe(here, versions)
    print(f"{n} texts, {lengths.mean():.0f} tokens in the mean, 95th percentile {np.percentile(lengths, 95):.0f}; "
          f"{pathlib.Path(model).name}, 1 thread. Medians of {args.rounds} interleaved rounds for each peer's best "
          "batching, which one pass over all texts with each had shown; libbert's time includes tokenizing.")
    report.table(["who", "first pass, s", "median, s", "tokens/s"],
                 [[who, report.number(first[who]), report.number(best[who]) if who in best else "",
                   f"{tokens / best.get(who, first[who]):.0f}"]
                  for who in sorted(bodies, key=lambda who: best.get(who, first[who]))])
    print(f"Ratio to the fastest peer ({peer}): {best[peer] / best[ours]:.3f}")


def maps(args):
    here, rows, versions = report.machine(), [], {}
    path = str(pathlib.Path(args.tmpfs, f"maps-{os.getpid()}.safetensors"))
    for model in args.model:
        workers, found = report.start(["libbert", "torch-eager"], model, args, 1)
        versions.update(found)
        for peer, worker in workers.items():
            without, with_maps = worker.do("maps", length=128, path=path, at_least=args.at_least * 10)
            rows.append({"model": pathlib.Path(model).name, "who": peer, "without": without, "with": with_maps,
                         "ratio": with_maps / without})
            worker.close()
        pathlib.Path(path).unlink(missing_ok=True)
    report.save(args, "maps", {"machine": here, "versions": versions, "rows": rows})
    report.describe(here, versions)
    print("All attention maps of one text of 128 tokens, 1 thread, ms; libbert writes them as safetensors to tmpfs, "
          "Hugging Face keeps them in memory.")
    report.table(["model", "who", "without", "with", "ratio"],
                 [[r["model"], r["who"], report.number(1e3 * r["without"]), report.number(1e3 * r["with"]),
                   f"{r['ratio']:.3f}"] for r in rows])


def whole_process(command):
    """(seconds, peak bytes) of a process from its start to its end."""
    start = time.perf_counter()
    process = subprocess.Popen(command, stdout=subprocess.DEVNULL)
    _, status, usage = os.wait4(process.pid, 0)
    seconds = time.perf_counter() - start
    if status:
        raise SystemExit(f"bench_peers: {command[0]} {command[1]}: exit {os.waitstatus_to_exitcode(status)}")
    process.returncode = 0
    return seconds, usage.ru_maxrss * 1024


def cold_commands(args, model):
    cache = str(pathlib.Path(args.cache, pathlib.Path(model).name))
    script = [sys.executable, str(HERE / "one_sentence.py")]
    return {"bert encode": [args.bert, "encode", "-m", model, SENTENCE],
            "bert encode, 1 thread": [args.bert, "encode", "-m", model, "-t", "1", SENTENCE],
            "onnxruntime": [*script, "onnxruntime", model, cache, SENTENCE],
            "transformers": [*script, "transformers", model, cache, SENTENCE]}


def cold_rows(args, model):
    report.Worker("ort", model, args, 1).finish()   # makes the graph, if it is not there
    commands = cold_commands(args, model)
    for command in commands.values():
        whole_process(command)  # now its files are in the page cache
    runs = report.rounds({who: (lambda c=command: whole_process(c)) for who, command in commands.items()}, args.rounds)
    weights = pathlib.Path(model, "model.safetensors").stat().st_size
    for who, measured in runs.items():
        seconds, peaks = zip(*measured)
        yield {"model": pathlib.Path(model).name, "who": who, "seconds": statistics.median(seconds),
               "peak_bytes": max(peaks), "weights_bytes": weights, "rounds": seconds}


def cold(args):
    """A process for one sentence, files in the page cache."""
    here = report.machine()
    rows = [row for model in args.model for row in cold_rows(args, model)]
    versions = {name: f"{name} {metadata.version(name)}" for name in ("onnxruntime", "torch", "transformers")}
    report.save(args, "cold", {"machine": here, "versions": versions, "rows": rows})
    report.describe(here, versions)
    print(f"Whole process, one sentence, page cache warm; medians of {args.rounds} interleaved rounds; the scripts of "
          "the peers use one thread (onnxruntime) and all (transformers).")
    report.table(["model", "who", "s", "peak MB", "weights MB"],
                 [[r["model"], r["who"], report.number(r["seconds"]), f"{r['peak_bytes'] / 1e6:.0f}",
                   f"{r['weights_bytes'] / 1e6:.0f}"] for r in rows])


def slope(x, y):
    return float(np.polyfit(x, y, 1)[0])


def linear(args):
    """Time against the number of texts and against length; memory over very many texts. Only libbert."""
    model, here = args.model[0], report.machine()
    workers, versions = report.start(["libbert"], model, args, 1)
    worker = workers["libbert"]
    counts, lengths = [1, 2, 5, 10, 20, 50, 100, 200, 500, 1000], [8, 16, 32, 64, 96, 128, 192, 256, 320, 384, 448, 512]
    counts = [n for n in counts if n <= args.texts]
    of_count = report.rounds({n: (lambda n=n: worker.do("texts", n=n, length=32)) for n in counts}, args.rounds)
    of_length = report.rounds({t: (lambda t=t: worker.do("time", batch=1, length=t, at_least=args.at_least))
                               for t in lengths}, args.rounds)
    a_call = max(1, args.many // 100)
    resident = worker.do("grow", rounds=100, n=a_call, length=8)
    worker.close()
    settled = resident[20:]
    result = {"machine": here, "versions": versions, "model": pathlib.Path(model).name, "text_tokens": 32,
              "counts": counts, "count_seconds": list(report.medians(of_count).values()), "lengths": lengths,
              "length_seconds": list(report.medians(of_length).values()), "texts": 100 * a_call, "resident": resident,
              "resident_bytes_a_text": slope(np.arange(20, 100) * a_call, settled)}
    report.save(args, "linear", result)
    report.describe(here, versions)
    report.table(["texts of 32 tokens", "ms", "ms a text"], [[str(n), report.number(1e3 * s), f"{1e3 * s / n:.3f}"]
                                                            for n, s in zip(counts, result["count_seconds"])])
    fit = length_fit(lengths, result["length_seconds"])
    report.table(["tokens of one text", "ms", "a + b·T + c·T²"],
                 [[str(t), report.number(1e3 * s), report.number(1e3 * f)]
                  for t, s, f in zip(lengths, result["length_seconds"], fit)])
    print(f"{100 * a_call} texts of 8 tokens: resident {resident[0] / 1e6:.1f} MB behind the first call, "
          f"{resident[20] / 1e6:.1f} behind a fifth of them, {resident[-1] / 1e6:.1f} at the end; "
          f"{result['resident_bytes_a_text']:.2f} bytes a text")


def length_fit(lengths, seconds):
    """Least squares of the relative error."""
    columns = np.stack([np.ones(len(lengths)), np.array(lengths), np.square(lengths)], axis=1)
    scaled = columns / np.array(seconds)[:, None]
    return columns @ np.linalg.lstsq(scaled, np.ones(len(lengths)), rcond=None)[0]


MODES = {"shapes": shapes, "mixed": mixed, "maps": maps, "cold": cold, "linear": linear}


def read_arguments():
    parser = argparse.ArgumentParser()
    parser.add_argument("modes", nargs="+", choices=MODES)
    for name in ("--model", "--peers", "--threads", "--shapes", "--cache", "--library", "--bert", "--out", "--tmpfs"):
        parser.add_argument(name, required=True)
    for name in ("--rounds", "--texts", "--many"):
        parser.add_argument(name, type=int, required=True)
    parser.add_argument("--at-least", type=float, required=True)
    args = parser.parse_args()
    args.model, args.peers = args.model.split(","), args.peers.split(",")
    args.threads = [int(n) for n in args.threads.split(",")]
    args.shapes = [tuple(map(int, shape.split("x"))) for shape in args.shapes.split(",")]
    return args


def main():
    args = read_arguments()
    for mode in args.modes:
        report.progress(mode)
        MODES[mode](args)


if __name__ == "__main__":
    main()
