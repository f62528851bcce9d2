#!/usr/bin/env python3
"""Sentence vectors of a table's texts, as a new column, by `bert encode` under Apache Spark.

    spark-submit scripts/spark_encode.py --bert BERT --model DIR INPUT OUTPUT [-- OPTIONS OF bert encode]

INPUT and OUTPUT are Parquet, or JSON lines where the name ends in .jsonl or .json. Each partition has one process. A
task that failed is run again and gives the same bits. BERT and DIR are there on every node, or come with
`--files` and `--archives` of spark-submit. In a program of your own:

    spark.sparkContext.addPyFile("scripts/spark_encode.py")
    from spark_encode import encode
    table = encode(table, "text", "vector", ["bert", "encode", "-m", "models/all-MiniLM-L6-v2", "-t", "1"])

A text that is null has no vector; neither has one that bert refuses: the executor's log says why, and the program ends
with status 1 when everything else is written.
"""
import argparse
import functools
import itertools
import json
import queue
import subprocess
import sys
import threading

from pyspark.sql import SparkSession
from pyspark.sql.types import ArrayType, FloatType, StructField, StructType

BATCH = 256  # rows that are handed over at once: as many as bert takes together


def line_of(row, number, text, pair):
    """What bert reads for a row; nothing where there is no text."""
    if row[text] is None:
        return b""
    record = {"id": number, "text": row[text]}
    if pair and row[pair] is not None:
        record["pair"] = row[pair]
    return json.dumps(record).encode() + b"\n"


def feed(rows, line, stdin, waiting):
    """Writes the lines of the rows. `waiting` gets each batch before its lines are written, then None or the error."""
    try:
        numbers = itertools.count()
        while batch := [(next(numbers), row) for row in itertools.islice(rows, BATCH)]:
            waiting.put(batch)
            stdin.write(b"".join(line(row, number) for number, row in batch))
            stdin.flush()
        stdin.close()
        waiting.put(None)
    except BrokenPipeError:
        waiting.put(None)  # the process has ended; its status says why
    except BaseException as error:  # of the rows: it belongs to the task, not to this thread
        waiting.put(error)


def answer(process, number):
    """The vector for a line, None where it was refused."""
    found = process.stdout.readline()
    if not found:
        raise RuntimeError(f"bert encode ended with status {process.wait()} before all was done; its words are in the executor's log")
    record = json.loads(found)
    if record["id"] != number:
        raise RuntimeError(f"bert encode answered text {record['id']}, expected {number}")
    return record.get("embedding")


def stop(process, feeder, waiting):
    """Ends both, however far they are."""
    process.kill()
    while feeder.is_alive():
        try:
            waiting.get(timeout=0.1)
        except queue.Empty:
            pass
    process.stdout.close()
    process.wait()


def encode_partition(rows, command, text, pair):
    """The rows as tuples with their vectors behind them."""
    first = next(rows := iter(rows), None)
    if first is None:
        return
    process = subprocess.Popen([*command, "--jsonl", "--on-error", "null"], stdin=subprocess.PIPE, stdout=subprocess.PIPE)
    waiting, refused = queue.Queue(maxsize=4), False
    feeder = threading.Thread(target=feed, daemon=True, args=(
        itertools.chain([first], rows), functools.partial(line_of, text=text, pair=pair), process.stdin, waiting))
    feeder.start()
    try:
        while batch := waiting.get():
            if isinstance(batch, BaseException):
                raise batch
            for number, row in batch:
                vector = answer(process, number) if row[text] is not None else None
                refused |= row[text] is not None and vector is None
                yield (*row, vector)
        if (status := process.wait()) not in (0, int(refused)):
            raise RuntimeError(f"bert encode ended with status {status}; its words are in the executor's log")
    finally:
        stop(process, feeder, waiting)


def encode(table, text, vector, command, pair=None):
    """The table with a column of vectors (float) for the column `text`; `command` is `bert encode` with its options."""
    schema = StructType([*table.schema.fields, StructField(vector, ArrayType(FloatType(), False))])
    rows = table.rdd.mapPartitions(functools.partial(encode_partition, command=command, text=text, pair=pair))
    return table.sparkSession.createDataFrame(rows, schema, verifySchema=False)


def is_json(path):
    return path.rstrip("/").endswith((".jsonl", ".json"))


def arguments():
    parser = argparse.ArgumentParser(usage="%(prog)s [OPTIONS] --model DIR INPUT OUTPUT [-- OPTIONS OF bert encode]")
    parser.add_argument("--bert", default="bert", help="the command, as the executors find it")
    parser.add_argument("--model", required=True, help="the model's folder, likewise")
    parser.add_argument("--text", default="text", help="column of texts")
    parser.add_argument("--pair", help="column of second segments")
    parser.add_argument("--vector", default="vector", help="column to write")
    parser.add_argument("--partitions", type=int, help="divide the table into so many; else as it is stored")
    parser.add_argument("input")
    parser.add_argument("output")
    parser.add_argument("options", nargs="*", help=argparse.SUPPRESS)
    return parser.parse_args()


def main():
    a = arguments()
    spark = SparkSession.builder.appName("bert encode").getOrCreate()
    table = spark.read.json(a.input) if is_json(a.input) else spark.read.parquet(a.input)
    if a.partitions:
        table = table.repartition(a.partitions)
    threads = spark.sparkContext.getConf().get("spark.task.cpus", "1")
    found = encode(table, a.text, a.vector, [a.bert, "encode", "-m", a.model, "-t", threads, *a.options], a.pair)
    found.write.json(a.output) if is_json(a.output) else found.write.parquet(a.output)
    written = spark.read.schema(found.schema).json(a.output) if is_json(a.output) else spark.read.parquet(a.output)
    refused = written.filter(written[a.text].isNotNull() & written[a.vector].isNull()).count()
    spark.stop()
    if refused:
        sys.exit(f"spark_encode.py: {refused} texts have no vector; the executors' logs say why")


if __name__ == "__main__":
    main()
