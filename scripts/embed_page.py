#!/usr/bin/env python3
"""A page as C arrays: embed_page.py OUTPUT.c NAME.html STYLE.css… SCRIPT.js…

In NAME.html {{style}} and {{script}} become the other files, in the order given; what stands before and after {{data}}
becomes NAME_before_data and NAME_after_data. Comments and all: who opens the page can read it.
"""
import pathlib
import re
import sys


def page(html, files):
    css = "".join(path.read_text(encoding="utf-8") for path in files if path.suffix == ".css")
    scripts = [path for path in files if path.suffix == ".js"]
    code = "".join(f"// {path.name}\n{path.read_text(encoding='utf-8')}\n" for path in scripts)
    if re.search(r"</script|<!--", code, re.I) or "</style" in css:
        sys.exit("embed_page.py: </script, <!-- or </style in the code would end its element")
    return html.replace("{{style}}", css).replace("{{script}}", code)


def array(name, text):
    data = text.encode("utf-8")
    rows = (",".join(map(str, data[i:i + 32])) for i in range(0, len(data), 32))
    return (f"const unsigned char {name}[] = {{\n" + ",\n".join(rows) + "};\n"
            f"const size_t {name}_size = sizeof {name};\n")


def main():
    output, html, *files = map(pathlib.Path, sys.argv[1:])
    whole = page(html.read_text(encoding="utf-8"), files)
    before, after = whole.split("{{data}}")
    output.write_text('#include "output/page_parts.h"\n\n' + array(f"{html.stem}_before_data", before) +
                      array(f"{html.stem}_after_data", after), encoding="utf-8")


if __name__ == "__main__":
    main()
