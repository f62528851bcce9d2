"""All tests of the command. BERT names the executable; arguments as for `python -m unittest` (a test's name)."""
import signal
import sys
import unittest

if __name__ == "__main__":
    signal.signal(signal.SIGHUP, signal.SIG_DFL)  # the command, too, would ignore it where nohup runs the tests
    names = sys.argv[1:] or ["test_usage", "test_input", "test_stream", "test_output", "test_formats", "test_verify",
                             "test_bench", "test_decoder", "test_page", "test_study", "test_ablate", "test_heads",
                             "test_sentence", "test_libraries", "test_manual", "test_hostile_text", "test_endings", "test_serve",
                             "test_serve_load"]
    unittest.main(module=None, argv=[sys.argv[0], *names])
