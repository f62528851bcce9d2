#!/usr/bin/env python3
"""scripts/spark_encode.py under Apache Spark, on one machine and on a small cluster of processes: check_spark.py BERT MODEL

Needs pyspark and Java, so it runs by name (`scripts/check spark`). What is right is what the command says by itself of
the same texts; it is compared bit by bit, also after tasks that failed on the way.
"""
import json
import os
import pathlib
import shutil
import struct
import subprocess
import sys
import tempfile

ROOT = pathlib.Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT / "scripts"))
os.environ["PYSPARK_PYTHON"] = sys.executable

from pyspark import TaskContext  # noqa: E402
from pyspark.sql import SparkSession  # noqa: E402
from spark_encode import encode  # noqa: E402

ROWS, PARTITIONS = 1000, 4
BERT, MODEL = str(pathlib.Path(sys.argv[1]).resolve()), str(pathlib.Path(sys.argv[2]).resolve())
COMMAND = [BERT, "encode", "-m", MODEL, "-t", "1"]


def text_of(i):
    """Null, empty, short, or longer than the model takes; none twice."""
    return None if i % 50 == 7 else "" if i == 8 else f"Zeile {i}: “fox”\n\t\0 " * (1 + i % 7 * (i % 5))


def rows():
    return [(i, text_of(i), f"pair {i}" if i % 3 else None) for i in range(ROWS)]


def bits(vector):
    return None if vector is None else struct.pack(f"<{len(vector)}f", *vector)


def by_itself(*options, pair=False):
    """Vectors by key, as the command gives them."""
    given = "".join(json.dumps({"id": i, "text": text, **({"pair": b} if pair and b else {})}) + "\n"
                    for i, text, b in rows() if text is not None)
    done = subprocess.run([*COMMAND, "--jsonl", *options], input=given.encode(), capture_output=True, check=False)
    found = map(json.loads, done.stdout.splitlines())
    return {**dict.fromkeys(range(ROWS)), **{record["id"]: bits(record["embedding"]) for record in found}}


def session(master):
    # Executors need no more than this, and are to find the module.
    return SparkSession.builder.master(master).appName("check_spark").config("spark.ui.enabled", "false") \
        .config("spark.executor.memory", "512m").config("spark.sql.shuffle.partitions", PARTITIONS) \
        .config("spark.submit.pyFiles", str(ROOT / "scripts/spark_encode.py")).getOrCreate()


def collected(table):
    found = {row["key"]: (row["text"], bits(row["vector"])) for row in table.collect()}
    assert len(found) == ROWS == table.count()
    assert {key: text for key, (text, _) in found.items()} == {i: text for i, text, _ in rows()}
    return {key: vector for key, (_, vector) in found.items()}


def fails_once(marker):
    """Rows whose second partition breaks off in its first attempt."""
    def part(number, given):
        for n, row in enumerate(given):
            if number == 1 and n == 100 and TaskContext.get().attemptNumber() == 0:
                pathlib.Path(marker).touch()
                raise OSError("this task fails once")
            yield row
    return part


def dies_once(folder):
    """A command that ends with an error after five answers, the first time that it is run."""
    command = folder / "bert"
    command.write_text(f"#!/bin/sh\nif mkdir '{folder}/died' 2>/dev/null; then '{BERT}' \"$@\" | head -n 5; exit 3; fi\nexec '{BERT}' \"$@\"\n")
    command.chmod(0o755)
    return [str(command), *COMMAND[1:]]


def check_master(master, retries, folder):
    spark = session(master)
    table = spark.createDataFrame(rows(), "key int, text string, second string").repartition(PARTITIONS, "key")
    assert collected(encode(table, "text", "vector", COMMAND)) == by_itself()
    assert collected(encode(table, "text", "vector", COMMAND, pair="second")) == by_itself(pair=True)
    passed = 2
    if retries:
        broken = table.rdd.mapPartitionsWithIndex(fails_once(folder / "failed")).toDF(table.schema)
        assert collected(encode(broken, "text", "vector", COMMAND)) == by_itself()
        assert (folder / "failed").exists()
        assert collected(encode(table, "text", "vector", dies_once(folder))) == by_itself()
        assert (folder / "died").exists()
        passed += 2
    try:
        encode(table, "text", "vector", [BERT, "encode", "-m", "no-such-model"]).collect()
        raise AssertionError("a model that is not there")
    except Exception as error:
        assert "bert encode ended with status 1" in str(error), error
    spark.stop()
    return passed + 1


def check_pipe(folder):
    """The one-liner of docs/scale.md."""
    spark = session("local[2]")
    (folder / "texts.jsonl").write_text("".join(json.dumps({"id": i, "text": text or ""}) + "\n" for i, text, _ in rows()))
    piped = spark.sparkContext.textFile(str(folder / "texts.jsonl"), PARTITIONS).pipe(" ".join([*COMMAND, "--jsonl"]), checkCode=True)
    expected = subprocess.run([*COMMAND, "--jsonl"], input=(folder / "texts.jsonl").read_bytes(), capture_output=True, check=True)
    assert piped.collect() == expected.stdout.decode().splitlines()
    spark.stop()
    return 1


def submit(folder, given, output, *options):
    submitter = shutil.which("spark-submit")
    return subprocess.run([submitter, "--master", "local[2]", "--conf", "spark.ui.enabled=false", str(ROOT / "scripts/spark_encode.py"),
                           "--bert", BERT, "--model", MODEL, str(folder / given), str(folder / output), *options],
                          capture_output=True, text=True, check=False)


def check_program(folder):
    """Parquet to Parquet, JSON lines to JSON lines, and texts that are refused."""
    spark = session("local[2]")
    spark.createDataFrame(rows(), "key int, text string, second string").write.parquet(str(folder / "in.parquet"))
    spark.read.parquet(str(folder / "in.parquet")).write.json(str(folder / "in.jsonl"), ignoreNullFields=False)
    spark.stop()
    strict = ("--", "--truncation", "error", "--max-length", "30")
    runs = [submit(folder, "in.parquet", "out.parquet", "--partitions", "3"), submit(folder, "in.jsonl", "out.jsonl"),
            submit(folder, "in.parquet", "strict.parquet", *strict)]
    assert [run.returncode for run in runs] == [0, 0, 1], [run.stderr[-3000:] for run in runs]
    expected, short = by_itself(), by_itself(*strict[1:])
    refused = sum(vector is None and text_of(i) is not None for i, vector in short.items())
    # spark-submit puts both streams of the program into its stdout.
    assert refused > 0 and f"spark_encode.py: {refused} texts have no vector" in runs[2].stdout, runs[2].stdout[-500:]
    spark = session("local[2]")
    assert collected(spark.read.parquet(str(folder / "out.parquet"))) == expected
    columns = "key int, text string, vector array<float>"
    assert collected(spark.read.schema(columns).json(str(folder / "out.jsonl"))) == expected
    assert collected(spark.read.parquet(str(folder / "strict.parquet"))) == short
    spark.stop()
    return 3


def main():
    passed = 0
    for master, retries in (("local[2]", False), ("local[2,2]", True), ("local-cluster[2,1,1024]", True)):
        with tempfile.TemporaryDirectory() as folder:
            passed += check_master(master, retries, pathlib.Path(folder))
            print(f"{master}: good", flush=True)
    for check in (check_pipe, check_program):
        with tempfile.TemporaryDirectory() as folder:
            passed += check(pathlib.Path(folder))
    print(f"{passed} passed, 0 failed")


if __name__ == "__main__":
    main()
