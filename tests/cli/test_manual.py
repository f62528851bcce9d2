"""Man pages and completions: each option of --help is in them, and the programs that read them have no complaint.

`scripts/check manual` installs mandoc and zsh for those tests that need them."""
import os
import pathlib
import re
import shutil
import subprocess
import unittest

from command import BERT, Case, bert

MANUAL = pathlib.Path(BERT).resolve().parent.parent / "man"
PAGES, BASH, ZSH = MANUAL / "man1", MANUAL / "completions/bert", MANUAL / "site-functions"


def commands():
    listed = bert("--help", check=0).stdout.decode().split("Subcommands:\n")[1].split("\n\n")[0]
    return [line.split()[0] for line in listed.splitlines()]


def options(command):
    """The spellings in --help: those at the beginning of a line."""
    text = bert(command, "--help", check=0).stdout.decode()
    return [s for line in re.findall(r"^ {2,6}(-.*)", text, re.M) for s in re.findall(r"^-\w(?=,)|(?:^|(?<=^-\w, ))--[\w-]+", line)]


def bash_offers(*words, folder="."):
    """What bash offers for the last word; like readline it makes words of its own of each = in them."""
    script = ('source "$0"; COMP_WORDS=("$@"); COMP_CWORD=$(($# - 1)); _bert; '
              'printf "%s\\n" "${COMPREPLY[@]}"')
    done = subprocess.run(["bash", "-c", script, str(BASH), *words], capture_output=True, text=True, cwd=folder)
    assert not done.stderr, done.stderr
    return done.stdout.split()


def zsh_offers(line, folder="."):
    done = subprocess.run(["zsh", pathlib.Path(__file__).with_name("complete.zsh").resolve(), str(ZSH), line],
                          capture_output=True, text=True, cwd=folder, env={**os.environ, "TERM": "dumb"})
    return sorted(set(done.stdout.split()))  # it tries several ways, and some twice


@unittest.skipUnless(MANUAL.exists(), "they are not written where the command cannot run (a cross build)")
class Manual(Case):
    def test_every_option(self):
        zsh, found = (ZSH / "_bert").read_text(), 0
        for name in commands():
            page = (PAGES / f"bert-{name}.1").read_text()
            in_bash = bash_offers("bert", name, "-")
            in_zsh = zsh.split(f"\n    {name})\n")[1].split(";;")[0]
            for option in options(name):
                self.assertIn(r"\fB" + option.replace("-", r"\-") + r"\fR", page, name)
                self.assertIn(option, in_bash, name)
                self.assertRegex(in_zsh, r"[\s({,]" + re.escape(option) + r"[\s)},'=+]", name)
                found += 1
        self.assertGreater(found, 100)

    def test_every_subcommand(self):
        names = commands()
        page = (PAGES / "bert.1").read_text()
        self.assertEqual(bash_offers("bert", ""), [*names, "--help", "--version"])
        self.assertEqual(sorted(p.name for p in PAGES.iterdir()), sorted(["bert.1", *(f"bert-{n}.1" for n in names)]))
        for name in names:
            self.assertIn(r".BR bert\-" + name.replace("-", r"\-") + " (1)", page)

    def test_bash(self):
        (self.folder / "a folder").mkdir()
        (self.folder / "a file").touch()
        here = {"folder": self.folder}
        self.assertEqual(bash_offers("bert", "en"), ["encode"])
        self.assertEqual(bash_offers("bert", "encode", "--poo"), ["--pooling"])
        self.assertEqual(bash_offers("bert", "encode", "--pooling", "m"), ["mean", "max", "mean_sqrt_len"])
        self.assertEqual(bash_offers("bert", "encode", "--pooling", "=", "c"), ["cls"])
        self.assertEqual(bash_offers("bert", "encode", "--isa", "="), ["auto", "ref", "avx2", "avx512", "neon"])
        self.assertEqual(bash_offers("bert", "encode", "--padding", ""), ["longest"])
        self.assertEqual(bash_offers("bert", "encode", "-m", "a", **here), ["a", "folder"])
        self.assertEqual(sorted(bash_offers("bert", "encode", "-o", "a", **here)), ["a", "a", "file", "folder"])
        self.assertEqual(bash_offers("bert", "encode", "--dim", ""), [])
        self.assertEqual(bash_offers("bert", "encode", "--", "--"), [])
        self.assertEqual(sorted(bash_offers("bert", "inspect", "a", **here)), ["a", "a", "file", "folder"])
        self.assertEqual(bash_offers("bert", "dance", "-"), [])

    @unittest.skipUnless(shutil.which("zsh"), "zsh is not here")
    def test_zsh(self):
        (self.folder / "models").mkdir()
        (self.folder / "more").touch()
        subprocess.run(["zsh", "-n", ZSH / "_bert"], check=True)
        self.assertEqual(zsh_offers("bert en"), ["encode"])
        self.assertEqual(zsh_offers("bert encode --poo"), ["--pooling"])
        self.assertEqual(zsh_offers("bert encode --pooling=me"), ["mean", "mean_sqrt_len"])
        self.assertEqual(zsh_offers("bert encode --pooling m"), ["max", "mean", "mean_sqrt_len"])
        self.assertEqual(zsh_offers("bert encode -m m", self.folder), ["models"])
        self.assertEqual(zsh_offers("bert encode -o m", self.folder), ["models", "more"])

    @unittest.skipUnless(shutil.which("man") and shutil.which("groff"), "man is not here")
    def test_man(self):
        for page in PAGES.iterdir():
            done = subprocess.run(["man", "--warnings=w", "-l", page], capture_output=True, text=True, check=True,
                                  env={**os.environ, "LC_ALL": "C.UTF-8", "MANWIDTH": "80"})
            self.assertEqual(done.stderr, "", page.name)
            self.assertIn("NAME", done.stdout)

    @unittest.skipUnless(shutil.which("mandoc"), "mandoc is not here")
    def test_mandoc(self):
        for page in PAGES.iterdir():
            done = subprocess.run(["mandoc", "-T", "lint", page], capture_output=True, text=True)
            self.assertEqual(done.stdout + done.stderr, "", page.name)
