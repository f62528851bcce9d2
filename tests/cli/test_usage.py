"""--help, --version, wrong usage, models that are not there."""
import os

from command import Case, FOX, TINY, bert, environment, model

COMMANDS = ["encode", "attention", "tokenize", "inspect", "verify"]


class Usage(Case):
    def test_help(self):
        everything = bert("--help", check=0).stdout.decode()
        for name in COMMANDS:
            self.assertIn(name, everything)
            text = bert(name, "--help", check=0).stdout.decode()
            self.assertIn("Usage: bert " + name, text)
            self.assertIn("Example:\n  bert " + name, text)

    def test_version(self):
        self.assertRegex(bert("--version", check=0).stdout.decode(), r"^bert \d+\.\d+\.\d+ \(numerics \d+, isa \w+, openblas .*\)\n$")

    def test_wrong_usage(self):
        self.refused(2, "expected a subcommand")
        self.refused(2, "no subcommand dance: there are encode, attention, tokenize, inspect, verify", "dance")
        self.refused(2, "no option --frobnicate", "encode", "--frobnicate")
        self.refused(2, "no option -z", "encode", "-z")
        self.refused(2, "--threads needs a value", "encode", "--threads")
        self.refused(2, "--threads 0: expected a whole number from 1", "encode", "--threads", "0")
        self.refused(2, "expected one of", "encode", "--pooling=sum")
        self.refused(2, "--jsonl takes no value", "encode", "--jsonl=1")
        self.refused(2, "--max-mem 3X", "encode", "--max-mem", "3X")
        for size in (f"{2 ** 23}T", f"{2 ** 33}G", f"{2 ** 63}", f"{2 ** 24}T", "99999999999999999999K", "0", "0K", "-1", "K", ""):
            self.refused(2, f"--max-line {size}: expected a size", "encode", "--max-line", size)
        self.assertEqual(len(bert("encode", "-m", TINY, "--max-line", f"{2 ** 23 - 1}T", stdin="a\n", check=0).stdout.splitlines()), 1)
        self.refused(2, "--format htm: expected one of json, npz, safetensors, bertviz, html", "attention", "-m", TINY, "--format", "htm", FOX)
        self.refused(2, r"the ending \.htm: expected one of", "attention", "-m", TINY, "-o", "x.htm", FOX)
        self.refused(2, "holds one kind of tensor", "encode", "-m", TINY, "--format", "npy", "--what", "embedding,last_hidden_state", FOX)
        self.refused(2, "holds one kind of tensor", "encode", "-m", TINY, "--format", "f32", "--what", "hidden_states", FOX)
        self.refused(2, "--pair TEXT_B needs exactly one TEXT", "encode", "-m", TINY, "--pair", "b", "a", "c")
        self.refused(2, "--jsonl reads stdin", "encode", "-m", TINY, "--jsonl", "a")
        self.refused(2, "--layers needs", "encode", "-m", TINY, "--layers", "1", "a")
        self.refused(2, "--what maps", "attention", "-m", TINY, "--what", "maps", "a")
        self.refused(2, "one text", "attention", "-m", TINY, "a", "b")
        self.refused(2, "needs --against", "verify", "-m", TINY)
        self.refused(2, "--on-error null needs --format jsonl", "encode", "-m", TINY, "--on-error", "null", "--format", "text", "a")

    def test_messages_stay_one_printable_line(self):
        """`refused` sees to the one line; names and arguments may hold anything."""
        hostile, shown = "a\n\x1b[31m\u202eb\x7f\xff", r"a\\x0a\\x1b\[31m\\xe2\\x80\\xaeb\\x7f"
        self.refused(2, "no subcommand " + shown, hostile)
        self.refused(2, "no option --" + shown, "encode", "--" + hostile)
        self.refused(2, r"no option -\\x0a", "encode", "-\n")
        self.refused(2, "--format " + shown, "encode", "-m", TINY, "--format", hostile, "a")
        for args in (("encode", "-m", hostile), ("encode", "-m", TINY, "--ids", hostile), ("verify", "-m", TINY, "--against", hostile),
                     ("encode", "-m", TINY, "-o", hostile + "/x"), ("inspect", hostile), ("tokenize", "-m", hostile)):
            self.refused(1, shown, *args)
        name = self.folder / hostile
        name.write_text("[PAD]\n[UNK]\n[CLS]\n[SEP]\n[MASK]\na\n")
        said = bert("inspect", "--as", "vocab", str(name), check=0).stdout.decode()
        self.assertRegex(said, shown + r"[^\n]*: vocab, fine\n$")
        self.assertRegex(bert("encode", "-m", os.fsencode(self.folder) + b"/\xff", "a", check=1).stderr.decode(), r"\\xff")

    def test_no_model(self):
        self.refused(2, r"no model: .*--model DIR .*\$BERT_MODEL .*scripts/fetch_model", "encode", "a")
        with_variable = dict(environment(), BERT_MODEL=TINY)
        given = bert("encode", "-m", TINY, "a", check=0)
        self.assertEqual(bert("encode", "a", env=with_variable, check=0).stdout, given.stdout)

    def test_options_end(self):
        dashes = bert("tokenize", "-m", TINY, "--format", "text", "--", "--help", check=0)
        self.assertEqual(dashes.stdout, b"[CLS] - - help [SEP]\n")

    def test_missing_model(self):
        self.refused(1, "nowhere", "encode", "-m", str(self.folder / "nowhere"), "a")
        self.refused(1, str(self.folder), "encode", "-m", str(self.folder), "a")

    def test_truncated_weights(self):
        for name in os.listdir(TINY):
            os.symlink(os.path.join(TINY, name), self.folder / name)
        weights = self.folder / "model.safetensors"
        whole = weights.read_bytes()
        weights.unlink()
        weights.write_bytes(whole[:-100])
        self.refused(1, r"model\.safetensors", "encode", "-m", str(self.folder), "a")

    def test_link_to_nothing(self):
        """Its file is gone, as in a cache that was cleared; what stands beside it must not take its place unsaid."""
        for name in os.listdir(TINY):
            os.symlink(os.path.join(TINY, name), self.folder / name)
        bert("encode", "-m", str(self.folder), "a", check=0)
        for name in ("tokenizer.json", "tokenizer_config.json", "config.json", "model.safetensors"):
            (self.folder / name).unlink()
            (self.folder / name).symlink_to("gone")
            self.refused(1, f"{name}: a link to a file that does not exist", "encode", "-m", str(self.folder), "a")
            (self.folder / name).unlink()
            os.symlink(os.path.join(TINY, name), self.folder / name)

    def test_choices_of_machine(self):
        self.refused(1, "--isa (neon|avx512): this CPU", "encode", "-m", TINY, "--isa", "neon" if os.uname().machine == "x86_64" else "avx512", "a")
        native = bert("encode", "-m", TINY, FOX, check=0).stdout
        self.assertEqual(bert("encode", "-m", TINY, "--isa", "ref", "-t", "1", FOX, check=0).stdout, native)
        self.assertEqual(bert("encode", "-m", TINY, "-t3", "--max-mem", "300K", FOX, check=0).stdout, native)
        self.refused(1, r"the pass needs [1-9]\d{4,} bytes, the limit given is 1000$|the limit given is 1024$", "encode", "-m", TINY, "--max-mem", "1K", FOX)

    def test_positions(self):
        self.refused(1, "--max-length 65: the model has 64 positions", "encode", "-m", TINY, "--max-length", "65", "a")
        self.refused(1, "--padding 65: the model has 64 positions", "encode", "-m", TINY, "--what", "last_hidden_state", "--format", "npy", "--padding", "65", "a")
        self.refused(1, "--layers 4: the model has 4 of them, 0 to 3", "encode", "-m", TINY, "--what", "hidden_states", "--layers", "4", "a")
        self.refused(1, "--heads 4", "attention", "-m", TINY, "--heads", "4", "a")
        self.refused(1, "no pooler", "encode", "-m", model("tiny-bert-sharded"), "--what", "pooler_output", "a")
