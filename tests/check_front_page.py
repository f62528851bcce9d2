#!/usr/bin/env python3
"""The page of bert serve in headless Chromium, texts in, attention out: check_front_page.py BERT MODEL (check_page.py
runs these with its own)."""
import os
import pathlib
import sys
import time

from browser import INSIDE, Browsing, main

BERT, MODEL = sys.argv[1:3]
os.environ["BERT"] = BERT
sys.path.insert(0, str(pathlib.Path(__file__).parent / "cli"))
from serving import Server  # noqa: E402


class FrontPage(Browsing):
    def tearDown(self):
        """Nothing is asked of anybody but the server, whose 401 is all that the console may hold."""
        self.assertEqual([said for said in self.browser.complaints() if "401" not in said], [])
        self.assertEqual([url for url in self.browser.requests() if not url.startswith((*INSIDE, "http://127.0.0.1:"))], [])

    def wait(self, script, wanted):
        for _ in range(100):
            found = self.browser.run(script)
            if found == wanted:
                break
            time.sleep(0.1)
        self.assertEqual(found, wanted)

    def ask(self, text, pair=""):
        self.browser.run("document.getElementById('text').value = arguments[0];"
                         "document.getElementById('pair').value = arguments[1];"
                         "document.querySelector('form button').click()", text, pair)

    def test_attention_of_a_text(self):
        with Server(model=MODEL) as server:
            self.browser.open(server.address + "/")
            sentence = "return document.getElementById('view').contentDocument?.getElementById('sentence')?.innerText || ''"
            self.ask("a cat can run")
            self.wait(sentence, "a cat can run")
            self.ask("a cat", "what can he do?")
            self.wait(f"return ({sentence[7:]}).includes('what can he do?')", True)
            self.wait("return document.getElementById('said').innerText", "")
            self.ask("a " * 100)
            self.wait("return document.getElementById('said').innerText", "The text was too long: 38 tokens were cut off.")

    def test_key(self):
        key = pathlib.Path(self.folder.name) / "key"
        key.write_text("secret", encoding="utf-8")
        with Server("--api-key-file", str(key), model=MODEL) as server:
            self.browser.open(server.address + "/")
            self.wait("return document.getElementById('locked').hidden", False)
            self.browser.run("document.getElementById('key').value = 'secret'")
            self.ask("a cat")
            self.wait("return document.getElementById('view').contentDocument?.getElementById('sentence')?.innerText || ''", "a cat")


if __name__ == "__main__":
    main()
