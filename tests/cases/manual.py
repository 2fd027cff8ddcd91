#!/usr/bin/env python3
"""Man pages and completions are made of the option tables: man, mandoc and the shells themselves take them."""
import functools
import os
import pty
import re
import select
import sys
import time

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "../lib"))
import mt


def said(*words):
    done = mt.execute([mt.MEMTRACE, *words])
    mt.equal((done.status, done.err), (0, ""), "status and errors of memtrace %s" % " ".join(words))
    return done.out


commands = functools.lru_cache(None)(mt.commands)


def options(command):
    return re.findall(r"^  (?:-\w, |    )--([\w-]+)", said(command, "--help"), re.M)


@functools.lru_cache(None)
def installed():
    """A root that `make install` filled; {path below it: full path}."""
    root = mt.scratch("root")
    # what is built is taken as it is: other tests may be using it
    done = mt.execute(["make", "install", "-o", "all", "B=" + mt.BUILD, "PREFIX=/usr", "DESTDIR=" + root, "LIBDIR=lib/x"], cwd=mt.TOP)
    mt.equal(done.status, 0, "status of make install: %s" % done)
    return {os.path.relpath(os.path.join(folder, name), root + "/usr"): os.path.join(folder, name)
            for folder, _, names in os.walk(root) for name in names}


def read(path):
    with open(path, encoding="utf-8") as file:
        return file.read()


def case_install_has_a_page_for_each_command():
    pages = {path for path in installed() if path.startswith("share/man/")}
    mt.equal(pages, {"share/man/man1/memtrace.1"} | {"share/man/man1/memtrace-%s.1" % c for c in commands()})
    for shell in ("bash-completion/completions/memtrace", "zsh/site-functions/_memtrace", "fish/vendor_completions.d/memtrace.fish"):
        mt.check(os.path.getsize(installed()["share/" + shell]) > 2000, shell)
    mt.check({"bin/memtrace", "lib/x/libmemtrace.so", "include/memtrace.h"} <= set(installed()), sorted(installed()))


def pages():
    return [path for name, path in sorted(installed().items()) if name.startswith("share/man/")]


def case_mandoc_has_no_remark():
    done = mt.execute([mt.need("mandoc"), "-Tlint", "-W", "warning", *pages()])
    mt.equal((done.status, done.out, done.err), (0, "", ""), "what mandoc says")


def case_groff_has_no_remark():
    for page in pages():
        done = mt.execute([mt.need("groff"), "-man", "-Tutf8", "-ww", "-z", page], env=mt.clean_env(LC_ALL="C.UTF-8"))
        # of a narrow paragraph that can't be filled, a question of looks
        errors = [line for line in done.err.splitlines() if "cannot adjust line" not in line]
        mt.equal((done.status, errors), (0, []), "what groff says of %s" % page)


def case_pages_say_what_the_help_says():
    """As a reader has it on the screen: every option, and the words behind it."""
    for command in commands():
        page = installed()["share/man/man1/memtrace-%s.1" % command]
        done = mt.execute([mt.need("mandoc"), "-Tutf8", "-O", "width=200", page])
        text = re.sub(r"\s+", " ", re.sub(r".\x08", "", done.out).replace("‐", "-").replace("−", "-").replace("’", "'"))
        for option in options(command):
            mt.check("--" + option in text, "%s: no --%s in %s" % (command, option, text))
        for line in re.findall(r"^ {26}?\S.*$|^  (?:-\w, |    )--\S+(?: \S+)? {2,}(\S.*)$", said(command, "--help"), re.M):
            if line != "this text":
                mt.check(re.sub(r"\s+", " ", line) in text, "%s: no %r in %s" % (command, line, text))


@mt.variants(("--man", "reprot"), ("--completion", "fsh"), ("--completion", "csh"), ("--completion",))
def case_others_are_refused(*words):
    done = mt.execute([mt.MEMTRACE, "help", *words])
    mt.equal((done.status, done.out, done.err.count("\n")), (2, "", 1), done)
    mt.check(len(words) == 1 or {"reprot": "'report'?", "fsh": "'zsh'?", "csh": "'zsh'?"}[words[1]] in done.err, done.err)


# ---- shells, as somebody types ------------------------------------------------------------------------------------


class Terminal:
    """A shell that somebody types into."""

    def __init__(self, words, cwd, **env):
        self.shown = ""
        self.pid, self.fd = pty.fork()
        if self.pid == 0:
            os.chdir(cwd)
            os.execvpe(words[0], words, mt.clean_env(TERM="dumb", PS1="READY> ", PATH=os.path.dirname(mt.MEMTRACE) + ":" + os.environ["PATH"], HOME=cwd, **env))

    def type(self, text):
        os.write(self.fd, text.encode())

    def until(self, pattern):
        """Reads until the pattern is shown behind what was waited for before."""
        end = time.monotonic() + mt.WAIT
        while not re.search(pattern, self.shown):
            mt.check(time.monotonic() < end, "no %r in %r" % (pattern, self.shown[-600:]))
            if select.select([self.fd], [], [], 1)[0]:
                try:
                    self.shown += os.read(self.fd, 4096).decode(errors="replace")
                except OSError:
                    mt.fail("the shell has ended: %r" % self.shown[-600:])
        self.shown = ""

    def close(self):
        os.close(self.fd)
        try:
            os.kill(self.pid, 9)
        except ProcessLookupError:
            pass
        os.waitpid(self.pid, 0)


def complete(terminal, typed, wanted):
    """A tab behind what is typed; then the line is taken away."""
    terminal.type(typed + "\t")
    terminal.until(wanted)
    terminal.type("\x15")


TYPED = (("memtrace repo", r"memtrace report"), ("memtrace peak --all-f", r"--all-frames"), ("memtrace leaks --by cat", r"category"),
         ("memtrace env --stacks sa", r"sample"), ("memtrace help wor", r"words"))


def case_bash_completes():
    folder = mt.scratch("bash")
    os.mkdir(os.path.join(folder, "a-trace-of-mine"))
    t = Terminal([mt.need("bash"), "--norc", "--noprofile", "-i"], folder)
    try:
        t.until("READY> ")
        t.type(". %s\n" % installed()["share/bash-completion/completions/memtrace"])
        t.until("READY> ")
        for typed, wanted in (*TYPED, ("memtrace report --by=cat", "category"), ("memtrace report a-tr", "a-trace-of-mine/")):
            complete(t, typed, wanted)
    finally:
        t.close()


def case_zsh_completes():
    folder = mt.scratch("zsh")
    os.mkdir(os.path.join(folder, "a-trace-of-mine"))
    t = Terminal([mt.need("zsh"), "-f", "-i"], folder, ZDOTDIR=folder)
    try:
        t.until("READY> ")
        t.type("unsetopt zle_bracketed_paste; fpath=(%s $fpath); autoload -U compinit; compinit -u -D; print LOADE'D'\n" %
               os.path.dirname(installed()["share/zsh/site-functions/_memtrace"]))
        t.until("LOADED")
        for typed, wanted in (*TYPED, ("memtrace report --by=cat", "category"), ("memtrace report a-tr", "a-trace-of-mine/")):
            complete(t, typed, wanted)
    finally:
        t.close()


def case_fish_completes():
    folder = mt.scratch("fish")
    os.mkdir(os.path.join(folder, "a-trace-of-mine"))
    fish = mt.need("fish")
    script = "source %s; for line in $argv; echo == $line; complete -C $line; end" % installed()["share/fish/vendor_completions.d/memtrace.fish"]
    typed = [t for t, _ in TYPED] + ["memtrace report --by=cat", "memtrace report a-tr"]
    done = mt.execute([fish, "--no-config", "-c", script, *typed], cwd=folder, env=mt.clean_env(HOME=folder, PATH=os.path.dirname(mt.MEMTRACE) + ":" + os.environ["PATH"]))
    mt.equal((done.status, done.err), (0, ""), "fish")
    parts = done.out.split("== ")[1:]
    wanted = [w for _, w in TYPED] + ["category", "a-trace-of-mine/"]
    wanted[0] = "report"
    for part, word in zip(parts, wanted):
        mt.check(word in part.partition("\n")[2], "%r of %r" % (word, part))


def case_every_value_that_is_offered_is_taken():
    """A list of a completion can't say what the option refuses."""
    rows = re.findall(r"^\t(\w+),--([\w-]+)(?: \| \S+)?\) values='([^']*)' ;;$", read(installed()["share/bash-completion/completions/memtrace"]), re.M)
    mt.check({("report", "by"), ("env", "stacks"), ("export", "format"), ("peak", "at"), ("run", "children")} <= {r[:2] for r in rows}, rows)
    for command, option, values in rows:
        for value in values.split():
            value += {"step:": "3", "phase:": "x"}.get(value, "")
            tail = ["--", "true"] if command == "run" else [] if command == "env" else ["no-such-trace"] * (2 if command == "diff" else 1)
            done = mt.execute([mt.MEMTRACE, command, "--%s=%s" % (option, value), *tail])
            mt.check("unknown value" not in done.err and "is no " not in done.err and "none of" not in done.err and "is not" not in done.err.replace("is not there", ""),
                     "memtrace %s --%s=%s: %s" % (command, option, value, done.err))


mt.main()
