#!/usr/bin/env python3
"""examples/service.c: check_service.py SERVICE BERT MODEL

Answers come in the order of the texts, with the bits that the command gives, from one worker or many; a signal ends it
while it waits for input; what cannot be opened is said.
"""
import json
import signal
import struct
import subprocess
import sys

TEXTS = ["", "the quick brown fox", "he can run " * 200] + [f"{'what can he do ' * (n % 7)}{n}" for n in range(200)]


def run(service, model, workers):
    return subprocess.run([service, model, str(workers)], input="\n".join(TEXTS) + "\n", capture_output=True, text=True)


def expected(bert, model):
    """The first four numbers of each vector, as float32 bits."""
    done = subprocess.run([bert, "encode", "-q", "-m", model], input="\n".join(TEXTS) + "\n", capture_output=True, text=True, check=True)
    rows = map(json.loads, done.stdout.splitlines())
    return [(row["tokens"], "truncated" in row, struct.pack("<4f", *row["embedding"][:4])) for row in rows]


def answer(line):
    head, _, numbers = line.partition(":")
    return int(head.split()[0]), head.endswith("cut"), struct.pack("<4f", *map(float, numbers.split()[:4]))


def check_signal(service, model):
    with subprocess.Popen([service, model, "2"], stdin=subprocess.PIPE, stdout=subprocess.PIPE, bufsize=0) as running:
        running.stdin.write(b"\n" * 100)
        running.stdout.read(1)   # it serves, so the handler is there
        running.send_signal(signal.SIGINT)
        while running.poll() is None:   # the signal may come just before it waits for the next line
            try:
                running.stdin.write(b"\n")
            except BrokenPipeError:
                break
        running.stdout.read()
        assert running.wait() in (0, 1)


def main():
    service, bert, model = sys.argv[1:]
    wanted = expected(bert, model)
    assert any(cut for _, cut, _ in wanted) and len(wanted) == len(TEXTS)
    for workers in (1, 4):
        done = run(service, model, workers)
        assert done.returncode == 0 and not done.stderr, done.stderr
        assert [answer(line) for line in done.stdout.splitlines()] == wanted, workers
    for bad in (("nowhere", 2), (model, 0)):
        done = run(service, *bad)
        assert done.returncode == 1 and done.stderr.startswith("service: ") and not done.stdout, done
    check_signal(service, model)
    print("5 passed, 0 failed")


if __name__ == "__main__":
    main()
