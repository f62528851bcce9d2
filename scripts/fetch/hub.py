"""Fetching a repository from a Hugging Face hub, or a server that answers like one.

Two addresses are used: api/models/ID/tree/REVISION?recursive=true lists files with size and hash, and
ID/resolve/REVISION/PATH gives one file, usually by a redirect to another host.
"""
import hashlib
import http.client
import json
import os
import re
import shutil
import socket
import time
import urllib.error
import urllib.parse
import urllib.request

from .common import CHUNK, Failure, Progress, Unreachable, megabytes, sha256_of

DEFAULT_ENDPOINT = "https://huggingface.co"
ATTEMPTS = 5      # in a row without a single new byte
FIRST_WAIT = 0.5  # seconds; doubled after each such attempt
TIMEOUT = 30      # seconds without an answer
SMALL_ANSWER = 64 << 20

INDEX = "model.safetensors.index.json"
# What libbert reads; everything else in a repository (other frameworks, ONNX, images) stays where it is.
SMALL_FILES = {
    "config.json", "tokenizer.json", "vocab.txt", "tokenizer_config.json", "special_tokens_map.json",
    "added_tokens.json", "modules.json", "sentence_bert_config.json", "config_sentence_transformers.json",
}
MODULE_FILE = re.compile(r"[0-9]+_[A-Za-z]+/(config\.json|model\.safetensors)")
SHARD = re.compile(r"[A-Za-z0-9._-]+\.safetensors")


class SameHostToken(urllib.request.HTTPRedirectHandler):
    """Follows redirects; the token is for the hub only and never travels to another host."""

    def redirect_request(self, req, fp, code, msg, headers, newurl):
        there = urllib.parse.urlsplit(newurl)
        if there.scheme not in ("http", "https"):
            raise Failure(f"{req.full_url}: redirects to {there.scheme}, which is not http or https")
        new = super().redirect_request(req, fp, code, msg, headers, newurl)
        here = urllib.parse.urlsplit(req.full_url)
        if new is not None and (here.scheme, here.netloc) != (there.scheme, there.netloc):
            new.remove_header("Authorization")
        return new


class Hub:
    def __init__(self, repo, revision):
        self.repo, self.revision = repo, revision
        self.endpoint = (os.environ.get("HF_ENDPOINT") or DEFAULT_ENDPOINT).rstrip("/")
        if not self.endpoint.startswith(("http://", "https://")):
            raise Failure(f"HF_ENDPOINT: expected http://… or https://…, found {self.endpoint}")
        self.token = os.environ.get("HF_TOKEN", "").strip()
        self.opener = urllib.request.build_opener(SameHostToken)

    def list_files(self):
        """{path: entry} of the whole repository, over as many pages as the hub makes of it."""
        url = self._url("api/models", f"tree/{urllib.parse.quote(self.revision, safe='')}?recursive=true")
        entries = {}
        while url:
            body, headers = self._get_json(url)
            if not isinstance(body, list):
                raise Failure(f"{url}: expected a list of files, found {type(body).__name__}")
            for entry in body:
                if isinstance(entry, dict) and isinstance(entry.get("path"), str):
                    entries[entry["path"]] = entry
            following = re.search(r'<([^>]+)>;\s*rel="?next', headers.get("Link") or "")
            url = urllib.parse.urljoin(url, following.group(1)) if following else None
        return entries

    def fetch(self, folder):
        """Brings everything libbert reads into `folder`, checked. What an earlier run left there is used."""
        entries = self.list_files()
        small = sorted(path for path in entries if path in SMALL_FILES or MODULE_FILE.fullmatch(path))
        if "config.json" not in small:
            raise Failure(f"{self.repo}: no config.json in the repository, so this is not a transformers model")
        first, weights_of = self._weights(entries)
        self._need_room(folder, [entries[path] for path in small + first])
        for path in small + first:
            self._fetch_file(folder, path, entries[path])
        shards = weights_of(folder)
        self._need_room(folder, [entries[path] for path in shards])
        for path in shards:
            self._fetch_file(folder, path, entries[path])

    def _weights(self, entries):
        """Files to fetch first, and a function that then names the shards."""
        if "model.safetensors" in entries:
            return ["model.safetensors"], lambda folder: []
        if INDEX in entries:
            return [INDEX], lambda folder: self._shards(folder, entries)
        others = [p for p in entries if p.endswith((".bin", ".h5", ".msgpack", ".ckpt"))]
        found = f"only {', '.join(sorted(others)[:3])}; convert it with save_pretrained()" if others else "nor an index"
        raise Failure(f"{self.repo}: no model.safetensors in the repository, {found}")

    def _shards(self, folder, entries):
        with open(os.path.join(folder, INDEX), encoding="utf-8") as file:
            index = json.load(file)
        weight_map = index.get("weight_map") if isinstance(index, dict) else None
        if not isinstance(weight_map, dict) or not weight_map:
            raise Failure(f"{INDEX}: expected a weight_map, found none")
        shards = sorted(set(map(str, weight_map.values())))
        for shard in shards:
            if not SHARD.fullmatch(shard) or shard not in entries:
                raise Failure(f"{INDEX}: names {shard!r}, which the repository does not have")
        return shards

    def _need_room(self, folder, entries):
        need = sum(size_and_hash(entry)[0] for entry in entries)
        free = shutil.disk_usage(folder).free
        if need > free:
            raise Failure(f"{folder}: {megabytes(need)} needed, {megabytes(free)} free")

    def _fetch_file(self, folder, path, entry):
        size, kind, expected = size_and_hash(entry)
        target = os.path.join(folder, path)
        os.makedirs(os.path.dirname(target), exist_ok=True)
        if os.path.exists(target) and hash_file(target, kind) == expected:
            return
        # The hash in the name keeps a later run from continuing an older version of the file.
        part = f"{target}.{expected[:16]}.part"
        resumed = os.path.exists(part)
        self._download(path, part, size)
        if resumed and hash_file(part, kind) != expected:  # what the earlier run left was damaged
            os.unlink(part)
            self._download(path, part, size)
        found = hash_file(part, kind)
        if found != expected:
            os.unlink(part)
            raise Failure(f"{self.repo}/{path}: expected {kind} {expected}, found {found}; nothing was kept")
        os.replace(part, target)

    def _download(self, path, part, size):
        """Appends to `part` until it has `size` bytes, going on after breaks where the last try stopped."""
        done = os.path.getsize(part) if os.path.exists(part) else 0
        bar, idle = Progress(path, size, done), 0
        while done < size or not os.path.exists(part):
            before = done
            try:
                done = self._append(path, part, size, bar)
                cause = f"the connection ended after {done} of {size} bytes"
            except (urllib.error.URLError, http.client.HTTPException, OSError) as error:
                cause = self._explain(error)
                done = os.path.getsize(part) if os.path.exists(part) else 0
            if done >= size and os.path.exists(part):
                break
            idle = 1 if done > before else idle + 1
            if idle >= ATTEMPTS:
                raise Failure(f"{self.repo}/{path}: {cause}; gave up after {ATTEMPTS} attempts. "
                              "Run it again to go on from there")
            time.sleep(FIRST_WAIT * 2 ** (idle - 1))
        bar.finish()

    def _append(self, path, part, size, bar):
        done = os.path.getsize(part) if os.path.exists(part) else 0
        url = self._url("", f"resolve/{urllib.parse.quote(self.revision, safe='')}/{urllib.parse.quote(path)}")
        with self._open(url, done) as answer:
            if done and not continues_at(answer, done):
                done = 0
            with open(part, "r+b" if done else "wb", buffering=0) as file:
                file.seek(done)
                while block := answer.read1(CHUNK):  # what is there already, so that a break loses nothing
                    file.write(block)
                    done += len(block)
                    if done > size:
                        file.truncate(0)
                        raise Failure(f"{self.repo}/{path}: expected {size} bytes, the server sends more")
                    bar.update(done)
        return done

    def _url(self, before, after):
        repo = urllib.parse.quote(self.repo)
        return "/".join(filter(None, [self.endpoint, before, repo, after]))

    def _open(self, url, start=0):
        request = urllib.request.Request(url, headers={"User-Agent": "libbert", "Accept-Encoding": "identity"})
        if self.token and url.startswith(self.endpoint + "/"):
            request.add_header("Authorization", f"Bearer {self.token}")
        if start:
            request.add_header("Range", f"bytes={start}-")
        try:
            return self.opener.open(request, timeout=TIMEOUT)
        except urllib.error.HTTPError as error:
            with error:
                if start and error.code == 416:  # the part is of no use: begin again
                    return self._open(url)
                if error.code < 500 and error.code not in (408, 429):
                    raise self._refused(error) from None
                raise

    def _get_json(self, url):
        for attempt in range(2):
            try:
                with self._open(url) as answer:
                    return json.loads(answer.read(SMALL_ANSWER)), answer.headers
            except (urllib.error.URLError, http.client.HTTPException, OSError) as error:
                cause = self._explain(error)
                if isinstance(getattr(error, "reason", None), socket.gaierror):
                    break  # a name that does not resolve will not do so half a second later
            except ValueError:
                raise Failure(f"{url}: expected JSON, found something else") from None
            time.sleep(FIRST_WAIT)
        raise Unreachable(f"{self.endpoint} cannot be reached: {cause}")

    def _refused(self, error):
        """What the hub's refusal means for the person who asked."""
        # Without this header a 403 comes from something between us and the hub.
        if error.code == 403 and not error.headers.get("X-Error-Code"):
            return Unreachable(f"{self.endpoint} cannot be reached: 403 {error.reason}")
        if error.code in (401, 403):
            what = "the token in HF_TOKEN has no access to it" if self.token else \
                "private, gated or not there; if you have access, set HF_TOKEN to your token"
            return Failure(f"{self.repo}: the hub answered {error.code}: {what}")
        if error.code == 404:
            return Failure(f"{self.repo}: the hub has no such model, or no revision {self.revision!r} of it (404)")
        return Failure(f"{error.url}: the hub answered {error.code} {error.reason}")

    @staticmethod
    def _explain(error):
        if isinstance(error, urllib.error.HTTPError):
            return f"the server answered {error.code} {error.reason}"
        reason = getattr(error, "reason", error)
        return str(reason) or type(reason).__name__


def size_and_hash(entry):
    """(size, kind, hex) of a listing entry: large files have a SHA-256, small ones the hash git gives a blob."""
    lfs = entry.get("lfs")
    large = isinstance(lfs, dict)
    size = lfs.get("size", entry.get("size")) if large else entry.get("size")
    digest = lfs.get("oid") if large else entry.get("oid")
    kind, digits = ("sha256", 64) if large else ("git-sha1", 40)
    digest = str(digest).removeprefix("sha256:")
    if not isinstance(size, int) or size < 0 or not re.fullmatch(f"[0-9a-f]{{{digits}}}", digest):
        raise Failure(f"{entry.get('path')}: the hub's listing has no usable size and hash for it")
    return size, kind, digest


def hash_file(path, kind):
    if kind == "sha256":
        return sha256_of(path)
    with open(path, "rb") as file:
        data = file.read()
    return hashlib.sha1(b"blob %d\0" % len(data) + data, usedforsecurity=False).hexdigest()


def continues_at(answer, start):
    """Whether the server honoured the range; one that did not sends the file from its beginning."""
    found = re.match(r"bytes (\d+)-", answer.headers.get("Content-Range") or "")
    return answer.status == 206 and found is not None and int(found.group(1)) == start
