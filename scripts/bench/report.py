"""What the benchmarks share: workers, rounds, the machine, tables, results as JSON."""
import json
import math
import pathlib
import platform
import re
import statistics
import subprocess
import sys
import time

HERE = pathlib.Path(__file__).resolve().parent
SETTLE_SECONDS = 0.3    # OpenMP's threads spin for 0.2 s behind a pass, and would take the next peer's second core


class Worker:
    def __init__(self, peer, model, args, threads):
        self.peer, self.threads = peer, threads
        cache = pathlib.Path(args.cache, pathlib.Path(model).name)
        self.process = subprocess.Popen(
            [sys.executable, HERE / "worker.py", peer, "--model", model, "--threads", str(threads), "--cache", cache,
             "--library", args.library], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)

    def started(self):
        """Its version; the first to ask waits until the model is there."""
        return self._answer()

    def do(self, what, **arguments):
        if self.threads > 1:
            time.sleep(SETTLE_SECONDS)
        self.process.stdin.write(json.dumps({"do": what, **arguments}) + "\n")
        self.process.stdin.flush()
        return self._answer()

    def _answer(self):
        line = self.process.stdout.readline()
        if not line:
            raise SystemExit(f"bench_peers: {self.peer} ended without an answer (its message is above)")
        return json.loads(line)

    def finish(self):
        """Waits until it has started, then ends it."""
        self.started()
        self.close()

    def close(self):
        self.process.stdin.close()
        self.process.wait()


def start(peers, model, args, threads):
    """({peer: worker}, {peer: version}); one after the other, because some make their graph first."""
    workers, versions = {}, {}
    for peer in peers:
        workers[peer] = Worker(peer, model, args, threads)
        versions[peer] = workers[peer].started()
    return workers, versions


def rounds(bodies, n):
    """{name: [seconds]}: each body once a round, n rounds, starting one further each time."""
    names, times = list(bodies), {name: [] for name in bodies}
    for i in range(n):
        first = i % len(names)
        for name in names[first:] + names[:first]:
            times[name].append(bodies[name]())
    return times


def medians(times):
    return {name: statistics.median(values) for name, values in times.items()}


def geometric_mean(values):
    return math.exp(statistics.fmean(math.log(v) for v in values))


def machine():
    cpuinfo = pathlib.Path("/proc/cpuinfo").read_text()
    name = re.search(r"model name\s*: (.*)", cpuinfo)
    fields = re.search(r"cpu family\s*: (\d+)\nmodel\s*: (\d+)", cpuinfo)
    memory = re.search(r"MemTotal:\s*(\d+)", pathlib.Path("/proc/meminfo").read_text())
    return {"cpu": name.group(1) if name else platform.machine(),
            "family_model": "/".join(fields.groups()) if fields else None,
            "isa": [flag for flag in ("avx2", "avx512f", "amx_tile", "asimd") if re.search(rf"\b{flag}\b", cpuinfo)],
            "cpus": cpuinfo.count("processor\t"), "memory_gb": round(int(memory.group(1)) / 1e6),
            "kernel": platform.release(), "load_before": pathlib.Path("/proc/loadavg").read_text().split()[0],
            "date": time.strftime("%Y-%m-%d")}


def describe(here, versions):
    print(f"Machine: {here['cpu']} (family/model {here['family_model']}, {', '.join(here['isa'])}), "
          f"{here['cpus']} CPUs, {here['memory_gb']} GB; load before {here['load_before']}; {here['date']}")
    named = "".join(version + "; " for version in dict.fromkeys(versions.values()))
    print(f"Versions: {named}Python {platform.python_version()}. All float32.")


def table(header, rows):
    """Markdown."""
    print("\n| " + " | ".join(header) + " |")
    print("|" + " --- |" * len(header))
    for row in rows:
        print("| " + " | ".join(row) + " |")
    print(flush=True)


def number(x):
    """Three digits."""
    return f"{x:.{max(0, 2 - math.floor(math.log10(x)))}f}" if x > 0 else "0"


def save(args, name, result):
    folder = pathlib.Path(args.out)
    folder.mkdir(parents=True, exist_ok=True)
    (folder / f"{name}.json").write_text(json.dumps(result, indent=1) + "\n")


def progress(text):
    print(f"bench_peers: {text}", file=sys.stderr, flush=True)
