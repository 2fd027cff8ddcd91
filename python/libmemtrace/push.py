"""Sends what memtrace push has queued: MEMTRACE_PUSH=SERVER=URL python3 -m libmemtrace.push FOLDER SECONDS

Requests are files push-NUMBER.json in the folder. They go in their order, and are removed when the server has them, or
refuses them for good. What can't be sent is tried again, later and later. A line on stdin: there is another one; the
end of stdin: none will come, and what can't be sent within so many seconds stays for the next time.
"""
import base64
import http.client
import os
import re
import select
import signal
import sys
import time
import urllib.error
import urllib.parse
import urllib.request
from typing import Dict, List, Tuple

PATHS = {"pyroscope": "/push.v1.PusherService/Push", "parca": "/api/profiles/writeraw"}
TIMEOUT = 15  # seconds without a word of the server's
WHOLE = 60  # seconds of one request and its answer
FIRST, MOST = 1.0, 60.0  # seconds until it is tried again
PASSING = (408, 425, 429)  # and 5xx: what a server says that will have it later


def address(server: str, url: str) -> Tuple[str, Dict[str, str]]:
    """Where to, and with which headers: NAME:PASSWORD@ in the URL, and MEMTRACE_PUSH_HEADERS (Name=value,Name=value)."""
    parts = urllib.parse.urlsplit(url)
    headers = {"Content-Type": "application/json", "User-Agent": "memtrace"}
    if parts.username is not None:
        word = "%s:%s" % (urllib.parse.unquote(parts.username), urllib.parse.unquote(parts.password or ""))
        headers["Authorization"] = "Basic " + base64.b64encode(word.encode()).decode()
    for pair in os.environ.get("MEMTRACE_PUSH_HEADERS", "").split(","):
        name, found, value = pair.partition("=")
        if found:
            headers[name.strip()] = urllib.parse.unquote(value.strip())
    bare = parts._replace(netloc=parts.netloc.rpartition("@")[2], path=parts.path.rstrip("/") + PATHS[server], fragment="")
    return urllib.parse.urlunsplit(bare), headers


def waiting(folder: str) -> List[str]:
    return sorted(os.path.join(folder, name) for name in os.listdir(folder) if re.fullmatch(r"push-\d+\.json", name))


class Stays(urllib.request.HTTPRedirectHandler):
    """A profile is no question that could be asked elsewhere, and a password is for who was named."""

    def redirect_request(self, *_):  # type: ignore[no-untyped-def]
        return None


OPENER = urllib.request.build_opener(Stays)


def too_long(*_: object) -> None:
    raise TimeoutError("no whole answer in %d s" % WHOLE)


class Sender:
    def __init__(self, server: str, url: str, folder: str) -> None:
        self.url, self.headers = address(server, url)
        self.folder = folder
        self.wait = 0.0  # until the next try
        self.failing = False

    def say(self, what: str) -> None:
        try:
            print("memtrace: push: " + re.sub(r"[^ -~]", "?", what), file=sys.stderr, flush=True)
        except OSError:
            pass  # nobody reads that any more

    def later(self, why: str, seconds: float) -> None:
        if not self.failing:
            self.say("%s: %s; it is tried again" % (self.url, why))
        self.failing = True
        self.wait = max(seconds, min(MOST, 2 * self.wait or FIRST))

    def ask(self, body: bytes) -> Tuple[int, str, str]:
        """(status, Retry-After, what is said of it)"""
        request = urllib.request.Request(self.url, body, self.headers, method="POST")
        try:
            with OPENER.open(request, timeout=TIMEOUT) as answer:
                return answer.status, "", ""
        except urllib.error.HTTPError as error:
            with error:
                said = error.headers.get("Location") or error.read(300).decode("utf-8", "replace").strip()
                return error.code, error.headers.get("Retry-After", ""), said[:300]

    def send(self, path: str) -> bool:
        """Whether the file is done with."""
        try:
            with open(path, "rb") as file:
                body = file.read()
        except FileNotFoundError:
            return True  # too many waited
        signal.alarm(WHOLE)
        try:
            status, after, text = self.ask(body)
        except (OSError, ValueError, http.client.HTTPException) as error:
            self.later(str(getattr(error, "reason", error)) or type(error).__name__, 0)
            return False
        finally:
            signal.alarm(0)
        if status in PASSING or status >= 500:
            self.later("HTTP %d" % status, min(float(after), MOST) if re.fullmatch("[0-9]{1,9}", after) else 0)
            return False
        if not 200 <= status < 300:
            self.say("%s: refused with HTTP %d: %s" % (self.url, status, text))
        elif self.failing:
            self.say("%s: answers again" % self.url)
        self.failing = False
        self.wait = 0.0
        os.unlink(path)
        return True

    def send_all(self) -> bool:
        """Whether nothing is left."""
        while True:
            files = waiting(self.folder)
            if not files:
                return True
            if not self.send(files[0]):
                return False


def more_came(seconds: float) -> bool:
    """Waits for a line, so long at most. False: that was the end of them."""
    if not select.select([0], [], [], seconds)[0]:
        return True
    return bool(os.read(0, 4096))


def main(folder: str, patience: float) -> int:
    signal.signal(signal.SIGALRM, too_long)
    server, url = os.environ["MEMTRACE_PUSH"].split("=", 1)
    sender = Sender(server, url, folder)
    open_ended, deadline = True, 0.0
    tried = 0.0  # when
    while True:
        if time.monotonic() - tried >= sender.wait:
            done = sender.send_all()
            tried = time.monotonic()
            if done and not open_ended:
                return 0
        rest = max(0.0, tried + sender.wait - time.monotonic())
        if open_ended and not more_came(rest if sender.wait else 3600):
            open_ended, deadline = False, time.monotonic() + patience
        elif not open_ended and time.monotonic() + rest > deadline:
            sender.say("%d requests are left in %s, for the next memtrace push" % (len(waiting(folder)), folder))
            return 1
        elif not open_ended:
            time.sleep(rest)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1], float(sys.argv[2])))
