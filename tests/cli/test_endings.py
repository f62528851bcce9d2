"""The command is killed, stopped, and given too little: the old file or the whole new one, an error, never a crash.

$BERT_TEST_LONG: as many random moments as the goals of docs/reliability.md ask for, not a tenth of them."""
import os
import random
import resource
import signal
import subprocess
import time

from command import BERT, Case, FOX, TINY, bert, environment

LONG = "BERT_TEST_LONG" in os.environ
MEASURED = "BERT_TEST_MODE" not in os.environ
TEXTS = (FOX + "\n").encode() * 300


class Killed(Case):
    def command(self, name):
        return [BERT, "encode", "-m", TINY, "-t", "2", "--what", "embedding,last_hidden_state", "-o", str(self.folder / name)]

    def whole(self, name):
        """The file that a run gives which nothing disturbs, and how long that takes."""
        began = time.monotonic()
        subprocess.run(self.command(name), input=TEXTS, check=True, env=environment())
        return (self.folder / name).read_bytes(), time.monotonic() - began

    def interrupt(self, name, number, delay):
        """Its status, and how long it took to end."""
        (self.folder / name).write_bytes(b"old")
        with open(self.folder / "texts", "rb") as texts:
            running = subprocess.Popen(self.command(name), stdin=texts, stderr=subprocess.PIPE, env=environment())
        time.sleep(delay)
        began = time.monotonic()
        running.send_signal(number)
        said = running.communicate(timeout=60)[1]
        if number != signal.SIGKILL or MEASURED:  # the sanitizers' search for leaks complains when it is killed
            self.assertEqual(said, b"")
        return running.returncode, time.monotonic() - began

    def random_moments(self, numbers, count):
        pick = random.Random(8)
        (self.folder / "texts").write_bytes(TEXTS)
        for name in ("out.jsonl", "out.safetensors"):
            whole, took = self.whole(name)
            ended = 0
            for _ in range(count // 2):
                number = pick.choice(numbers)
                status, waited = self.interrupt(name, number, pick.uniform(0, 1.2 * took))
                found = (self.folder / name).read_bytes()
                self.assertIn(found, (b"old", whole))
                self.assertIn(status, (0, -number if number == signal.SIGKILL else 128 + number, -number))
                self.assertTrue(status != 0 or found == whole)
                ended += status != 0
                left = [n for n in os.listdir(self.folder) if n.startswith(".bert-")]
                if number == signal.SIGKILL:
                    for n in left:
                        (self.folder / n).unlink()
                else:
                    self.assertEqual(left, [])
                    if MEASURED:
                        self.assertLess(waited, 5)  # 0.5 s are promised; other programs run here too
            self.assertGreater(ended, 0)
            what = "killed" if signal.SIGKILL in numbers else "stopped"
            print(f"figure: {what}, {name}: {count // 2} times, {ended} of them before the end")

    def test_killed_at_random_moments(self):
        self.random_moments([signal.SIGKILL], 200 if LONG else 20)

    def test_stopped_at_random_moments(self):
        self.random_moments([signal.SIGINT, signal.SIGTERM], 100 if LONG else 20)


class TooLittle(Case):
    def limited(self, what, soft, *args, stdin=b""):
        def limit():
            resource.setrlimit(what, (soft, soft))
        return subprocess.run([BERT, *args], input=stdin, capture_output=True, env=environment(), preexec_fn=limit, timeout=60)

    def ends_in_order(self, done):
        """Success, or one status and at least one line that says why."""
        self.assertIn(done.returncode, (0, 1), done.stderr)
        if done.returncode:
            self.assertRegex(done.stderr.decode(), r"^bert: .{10,}\n")

    def test_address_space(self):
        if not MEASURED:
            self.skipTest("sanitizers need the whole address space")
        out = str(self.folder / "out.npz")
        statuses = set()
        for megabytes in (16, 24, 32, 40, 48, 64, 96, 128, 256):
            done = self.limited(resource.RLIMIT_AS, megabytes << 20, "encode", "-m", TINY, "-t", "2", "-o", out, stdin=TEXTS)
            if done.returncode != 127:  # the loader itself found no room
                self.ends_in_order(done)
                statuses.add(done.returncode)
        self.assertIn(0, statuses)
        self.ends_in_order(self.limited(resource.RLIMIT_AS, 256 << 20, "tokenize", "-m", TINY, "--no-pair", stdin=b"a" * (40 << 20)))

    def test_descriptors(self):
        for most in range(3, 17):
            done = self.limited(resource.RLIMIT_NOFILE, most, "encode", "-m", TINY, "-o", str(self.folder / "out.jsonl"), "a")
            if done.returncode != 127:
                self.ends_in_order(done)
        self.assertEqual(done.returncode, 0)

    def test_stack(self):
        if not MEASURED:
            self.skipTest("sanitizers need more stack")
        for command in ("encode", "attention", "tokenize"):
            done = self.limited(resource.RLIMIT_STACK, 256 << 10, command, "-m", TINY, FOX)
            self.assertEqual((done.returncode, done.stderr), (0, b""))

    def test_full_file_system(self):
        """A tmpfs of 64 KiB in a mount namespace of its own, where that is allowed."""
        script = f"mount -t tmpfs -o size=64k none '{self.folder}' && exec '{BERT}' encode -m '{TINY}' --what hidden_states -o '{self.folder}/out.npz'"
        probe = subprocess.run(["unshare", "-m", "mount", "-t", "tmpfs", "-o", "size=64k", "none", str(self.folder)], capture_output=True)
        if probe.returncode:
            self.skipTest("no mounts here")
        done = subprocess.run(["unshare", "-m", "sh", "-c", script], input=TEXTS, capture_output=True, env=environment())
        self.assertEqual(done.returncode, 1)
        self.assertRegex(done.stderr.decode(), r"^bert: .*out\.npz: cannot write: No space left on device\n$")

    def test_folder_that_takes_no_file(self):
        self.refused(1, "cannot create it", "encode", "-m", TINY, "-o", "/proc/out.jsonl", FOX)


class StrangeModels(Case):
    """In the place of a model's file: refused at once, by name."""

    def model(self, name, make):
        folder = self.folder / "m"
        folder.mkdir()
        for file in os.listdir(TINY):
            if file != name:
                os.symlink(os.path.join(TINY, file), folder / file)
        make(folder / name)
        began = time.monotonic()
        said = self.refused(1, name.replace(".", r"\."), "encode", "-m", str(folder), "a")
        self.assertLess(time.monotonic() - began, 30)  # 1 s is promised
        for file in os.listdir(folder):
            (folder / file).rmdir() if (folder / file).is_dir() and not (folder / file).is_symlink() else (folder / file).unlink()
        folder.rmdir()
        return said

    def test_each(self):
        loop = lambda path: path.symlink_to(path.name)
        makes = {"fifo": os.mkfifo, "folder": os.mkdir, "loop": loop}
        for device in ("/dev/zero", "/dev/null", "/dev/urandom", "/proc/self/mem"):
            makes[device] = lambda path, device=device: path.symlink_to(device)
        for name in ("model.safetensors", "config.json", "tokenizer.json", "tokenizer_config.json"):
            for what, make in makes.items():
                with self.subTest(f"{what} as {name}"):
                    self.model(name, make)

    def test_as_the_model_itself(self):
        os.mkfifo(self.folder / "fifo")
        (self.folder / "loop").symlink_to("loop")
        for path in ("/dev/zero", "/dev/null", str(self.folder / "fifo"), str(self.folder / "loop")):
            for command in ("encode", "attention", "tokenize", "inspect"):
                with self.subTest(f"{command} {path}"):
                    done = bert(command, *(["-m"] if command != "inspect" else []), path, *(["a"] if command != "inspect" else []), timeout=30)
                    self.assertEqual(done.returncode, 1)
                    self.assertIn(path.encode(), done.stderr)
