#!/usr/bin/env python3
"""Man pages and completions out of what the command says of itself: make_manual.py BERT FOLDER VERSION DATE OUTPUT

`bert --help` and `bert SUBCOMMAND --help` come from the tables from which the command line is read, so what is written
here cannot say anything else. FOLDER has the frames (man/*.in), in which @name@ is filled in. OUTPUT gets the
folders man1, completions (bash) and site-functions (zsh).
"""
import collections
import pathlib
import re
import shutil
import subprocess
import sys
import textwrap

Option = collections.namedtuple("Option", "letter name argument help")
Command = collections.namedtuple("Command", "name usage summary options example")
OPTION = re.compile(r"  (?:-(\w), |    )--([\w-]+)(?: (\S+))?(?: +(.*))?")


def ask(bert, *words):
    return subprocess.run([bert, *words, "--help"], check=True, capture_output=True, text=True, encoding="utf-8").stdout


def read_options(lines):
    options = []
    for line in lines:
        if found := OPTION.fullmatch(line):
            options.append(Option(*(part or "" for part in found.groups())))
        else:  # a long name has its words in the next line
            options[-1] = options[-1]._replace(help=(options[-1].help + " " + line.strip()).strip())
    return options


def read_command(name, text):
    """The paragraphs of --help: usage, summary, options, example."""
    usage, summary, options, example = text.strip("\n").split("\n\n")
    return Command(name, usage.removeprefix("Usage: "), summary, read_options(options.splitlines()[1:]),
                   textwrap.dedent(example.split("\n", 1)[1]))


def read_help(bert):
    """The command itself and its subcommands."""
    usage, summary, listed, _, example = ask(bert).strip("\n").split("\n\n")
    whole = Command("", usage.removeprefix("Usage: "), summary, [], textwrap.dedent(example.split("\n", 1)[1]))
    names = [line.split()[0] for line in listed.splitlines()[1:]]
    return whole, [read_command(name, ask(bert, name)) for name in names]


def fill(frame, **values):
    return re.sub(r"@(\w+)@", lambda name: values[name[1]], frame)


# ---- roff ----

def roff(text):
    special = {"\\": r"\e", "-": r"\-", "'": r"\(aq", "`": r"\(ga", "^": r"\(ha", "~": r"\(ti"}
    return "".join(special.get(c) or (c if c.isascii() else f"\\[u{ord(c):04X}]") for c in text)


def paragraph(text):
    """Lines that are not taken for requests: those begin with a dot (the apostrophe is spelt out)."""
    return re.sub(r"^\.", r"\\&.", textwrap.fill(roff(text), 78, break_on_hyphens=False, break_long_words=False), flags=re.M)


def literal(text):
    return ".nf\n" + re.sub(r"^\.", r"\\&.", roff(text), flags=re.M) + "\n.fi"


def synopsis(usage):
    """Capitals are what the user puts in; the rest is typed as it stands."""
    text = re.sub(r"\b[A-Z][A-Z_]+", lambda word: rf"\fI{word[0]}\fR", roff(usage))
    text = re.sub(r"^bert(?: [a-z][a-z\\-]*)?", lambda name: rf"\fB{name[0]}\fR", text)
    return re.sub(r"(?<!\w)(?:\\-)+\w*", lambda typed: rf"\fB{typed[0]}\fR", text)


def option_name(option):
    letter = rf"\fB\-{option.letter}\fR, " if option.letter else ""
    argument = rf" \fI{roff(option.argument)}\fR" if option.argument else ""
    return rf"{letter}\fB{roff('--' + option.name)}\fR{argument}"


def option_entries(options):
    return "\n".join(f".TP\n{option_name(o)}\n{paragraph(o.help)}" for o in options)


def brief(command):
    """What apropos shows: the summary's first sentence."""
    first = command.summary.split(". ")[0].rstrip(".")
    return paragraph(first[0].lower() + first[1:])


def see_also(names):
    return ",\n".join(rf".BR {roff(name)} (1)" for name in names)


def write_pages(folder, frames, whole, commands, facts):
    pages = ["bert", *("bert-" + c.name for c in commands)]
    listed = "\n".join(f".TP\n.BR {roff('bert-' + c.name)} (1)\n{paragraph(c.summary)}" for c in commands)
    text = fill((frames / "bert.1.in").read_text(encoding="utf-8"), **facts, synopsis=synopsis(whole.usage),
                summary=paragraph(whole.summary), subcommands=listed, example=literal(whole.example),
                see_also=see_also(pages[1:]))
    (folder / "bert.1").write_text(text, encoding="utf-8")
    frame = (frames / "subcommand.1.in").read_text(encoding="utf-8")
    for c, page in zip(commands, pages[1:]):
        text = fill(frame, **facts, title=roff(page).upper(), name=roff(c.name), brief=brief(c),
                    synopsis=synopsis(c.usage), summary=paragraph(c.summary), options=option_entries(c.options),
                    example=literal(c.example), see_also=see_also(p for p in pages if p != page))
        (folder / f"{page}.1").write_text(text, encoding="utf-8")


# ---- completion ----

def words_of(option):
    """The words that an option may be given: "longest|N" has one, N is anybody's."""
    return [word for word in option.argument.split("|") if not word.isupper()] if "|" in option.argument else []


def takes(option):
    """-d: a folder, -f: a file."""
    if option.argument == "DIR":
        return "-d"
    return "-f" if re.match(r"FILE|PATH", option.argument) else ""


def spellings(option):
    return ["--" + option.name, *(["-" + option.letter] if option.letter else [])]


def takes_files(command):
    return re.search(r"PATH|FILE", command.usage) is not None


def bash_value(command, option):
    action = "return ;;"
    if words_of(option):
        action = f"_bert_words '{' '.join(words_of(option))}' \"$cur\"; return ;;"
    elif takes(option):
        action = f"_bert_files {takes(option)} \"$cur\"; return ;;"
    return f"    {'|'.join(f'{command.name}:{s}' for s in spellings(option))}) {action}"


def bash_completion(frame, commands):
    values, options = [], []
    for c in commands:
        values += [bash_value(c, o) for o in c.options if o.argument]
        names = textwrap.fill(" ".join(s for o in c.options for s in spellings(o)), 100, break_on_hyphens=False)
        options.append(f"    {c.name}:-*) _bert_words '{names}' \"$cur\" ;;")
        if takes_files(c):
            options.append(f"    {c.name}:*) _bert_files -f \"$cur\" ;;")
    return fill(frame, commands=" ".join(c.name for c in commands), values="\n".join(values), options="\n".join(options))


def zsh_quote(text, special):
    return re.sub(f"([{re.escape(special)}])", r"\\\1", text).replace("'", r"'\''")


def zsh_option(command, option):
    names = [name + ("" if not option.argument else "=" if name.startswith("--") else "+") for name in spellings(option)]
    again = f"[-{option.letter} {option.argument}...]" in command.usage
    before = "*" if again else f"({' '.join(spellings(option))})"   # what is not offered behind it
    spelt = names[0] if len(names) == 1 else f"'{before}'{{{','.join(names)}}}"
    action = {"-d": "_files -/", "-f": "_files"}.get(takes(option), " ")
    if words_of(option):
        action = f"({' '.join(words_of(option))})"
    argument = f":{zsh_quote(option.argument, ':')}:{action}" if option.argument else ""
    return f"{spelt}'[{zsh_quote(option.help, '[]:')}]{argument}'"


def zsh_completion(frame, commands):
    listed = "\n".join(f"        '{zsh_quote(c.name, ':')}:{zsh_quote(c.summary, ':')}'" for c in commands)
    options = []
    for c in commands:
        rest = "'*:file:_files'" if takes_files(c) else "'*:text: '"
        specs = " \\\n        ".join([*(zsh_option(c, o) for o in c.options), rest])
        options.append(f"    {c.name})\n        _arguments -s -S : \\\n        {specs} ;;")
    return fill(frame, commands=listed, options="\n".join(options))


def main():
    bert, frames, version, date, output = sys.argv[1], pathlib.Path(sys.argv[2]), *sys.argv[3:5], pathlib.Path(sys.argv[5])
    whole, commands = read_help(bert)
    for name in ("man1", "completions", "site-functions"):
        shutil.rmtree(output / name, ignore_errors=True)
        (output / name).mkdir()
    write_pages(output / "man1", frames, whole, commands, {"version": version, "date": date})
    for name, frame, write in (("completions/bert", "bert.bash.in", bash_completion),
                               ("site-functions/_bert", "_bert.in", zsh_completion)):
        text = write((frames / frame).read_text(encoding="utf-8"), commands)
        (output / name).write_text(text, encoding="utf-8")


if __name__ == "__main__":
    main()
