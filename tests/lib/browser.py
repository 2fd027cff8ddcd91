"""Pages of memtrace html in headless Chromium.

    page = browser.page(trace.path)                    # memtrace html; a path
    browser.ask(page, "return memtrace.state.tab")     # what an async function says in the page; fails where it complains
    browser.costs(page)["picture_ms"]
"""
import functools
import json
import os
import shutil
import subprocess
import threading

import mt

MODULES = os.path.join(mt.TOP, os.environ.get("PAGE_MODULES", "build/page/node_modules"))


@functools.lru_cache(None)
def chromium():
    """The browser, or skip: of npm's packages and Debian's (make setup-check)."""
    for path, what in ((os.path.join(MODULES, "playwright-core"), "npm's packages for the page are not installed"), (shutil.which("chromium"), "chromium is not installed")):
        if not path or not os.path.exists(path):
            mt.skip(what)
    mt.need("node")
    return shutil.which("chromium")


def page(*directories, options=()):
    path = os.path.join(mt.scratch("page"), "page.html")
    done = mt.execute([mt.MEMTRACE, "html", "-q", "-o", path, *options, *directories])
    mt.equal((done.status, done.out), (0, path + "\n"), "memtrace html: %s" % done)
    return path


@functools.lru_cache(None)
def driver(before, env):
    """Of one browser for all pages; it ends with its stdin."""
    command = [*before, "node", os.path.join(mt.TOP, "tests/lib/browse.cjs"), MODULES, chromium()]
    return subprocess.Popen(command, env=mt.clean_env(**dict(env)), stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, encoding="utf-8")


def say(path, script="", before=(), env=(), **more):
    """All that the driver says: value, console, errors, requests, dialogs. BEFORE and ENV, pairs, are of a browser of its own."""
    child = driver(before, env)
    late = threading.Timer(mt.WAIT, child.kill)
    late.start()
    try:
        child.stdin.write(json.dumps(dict(more, page=path, script=script)) + "\n")
        child.stdin.flush()
        line = child.stdout.readline()
    finally:
        late.cancel()
    said = json.loads(line or '{"failed": "it ended, or took longer than %d s"}' % mt.WAIT)
    mt.check("failed" not in said, "the browser failed: %s" % said)
    return said


def ask(path, script, **more):
    """The value; nothing was complained of (the policy among it), asked of the network, or opened."""
    said = say(path, script, **more)
    mt.equal((said["console"], said["errors"], said["requests"], said["dialogs"]), ([], [], [], 0), "what the page complained of, or asked for")
    return said["value"]


def costs(path):
    """Milliseconds, and those of the page's main thread, until it is drawn and from a brush to the picture."""
    done = mt.execute(["node", os.path.join(mt.TOP, "tests/bench/brush.cjs"), MODULES, chromium(), path], env=mt.clean_env())
    mt.equal(done.status, 0, done.err)
    return json.loads(done.out)
