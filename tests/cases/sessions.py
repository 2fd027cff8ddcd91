#!/usr/bin/env python3
"""What a shell starts: pipelines, scripts that export LD_PRELOAD, eval $(memtrace env); and what a report says it is about."""
import os
import re
import struct
import sys
sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "../lib"))
import mt

BUSY = " ".join([mt.program("busy"), "20000", "1000", "300"])
EXPORT = "export LD_PRELOAD=%s MEMTRACE_OUTPUT=%s\n"


def folder():
    return mt.scratch("session")


def shell(text, cwd, env=None, command=("bash", "-c")):
    """A shell that is not traced itself."""
    return mt.plain([*command, text], cwd=cwd, env=env)


def names(trace):
    return sorted(p["name"] for p in trace.processes)


def traces(cwd):
    """None is left under the name it was made with."""
    found = sorted(f for f in os.listdir(cwd) if os.path.isdir(os.path.join(cwd, f)))
    mt.check(not [f for f in found if f.startswith(".")], "left behind: %s" % found)
    return found


# ---- one trace for one job ------------------------------------------------------------------------------------


def case_script():
    """One after the other, in subshells and pipelines, with a pause that outlives the recorder."""
    cwd = folder()
    shell(EXPORT % (mt.SHIM, "t") + """
        name=$(echo a,b | cut -d, -f1)
        (cat /dev/null; true)
        %s >/dev/null 2>&1 | cat
        sleep 2.5
        ls >/dev/null
    """ % BUSY, cwd)
    trace = mt.Trace(os.path.join(cwd, "t")).intact()
    mt.equal(traces(cwd), ["t"])
    mt.equal(sorted(set(names(trace)) & {"cut", "cat", "busy", "sleep", "ls"}), ["busy", "cat", "cut", "ls", "sleep"])
    mt.equal(trace.process("busy")["host"]["allocations"], 20000, "of busy")


def case_pipelines_of_a_shell():
    """With job control each pipeline is a process group: what is typed again is another trace, as ever."""
    cwd = folder()
    shell("set -m\n" + EXPORT % (mt.SHIM, "t") + 2 * ("%s 2>&1 | cat >/dev/null\n" % BUSY), cwd)
    mt.equal(traces(cwd), ["t", "t.2"])
    for name in traces(cwd):
        mt.equal(names(mt.Trace(os.path.join(cwd, name)).intact()), ["busy", "cat"], "processes of " + name)


def case_output_with_a_slash():
    cwd = folder()
    shell("set -m\n" + EXPORT % (mt.SHIM, "a/t/") + 2 * "/bin/true | cat\n", cwd)
    mt.equal(traces(os.path.join(cwd, "a")), ["t", "t.2"])
    mt.equal(len(mt.Trace(os.path.join(cwd, "a/t.2")).processes), 2)


def case_two_at_once():
    """Fifty pipelines whose two root processes make the trace at the same moment."""
    cwd, count = folder(), 50
    shell("set -m\nfor i in {1..%d}; do env LD_PRELOAD=%s MEMTRACE_OUTPUT=t$i true | env LD_PRELOAD=%s MEMTRACE_OUTPUT=t$i true\ndone"
          % (count, mt.SHIM, mt.SHIM), cwd)
    mt.equal(traces(cwd), sorted("t%d" % (i + 1) for i in range(count)))
    for name in traces(cwd):
        infos = [f for f in os.listdir(os.path.join(cwd, name)) if re.fullmatch(r"\d+-0\.info", f)]
        mt.equal(len(infos), 2, "processes in " + name)


def case_many_at_once():
    cwd = folder()
    shell(EXPORT % (mt.SHIM, "deep/t") + "for i in {1..40}; do true & /bin/true & done; wait", cwd)
    mt.equal(traces(os.path.join(cwd, "deep")), ["t"])
    mt.equal(names(mt.Trace(os.path.join(cwd, "deep/t")).intact()), ["true"] * 40)


@mt.variants("group", "leader", "boot", "namespace", "limit", "ring_dir", "supervised", "%p")
def case_others_do_not_join(what):
    """A trace that is there, of a job that looks alike."""
    cwd = folder()
    script = EXPORT % (mt.SHIM, "t%p" if what == "%p" else "t") + "/bin/true\n"
    script += {"limit": "export MEMTRACE_LIMIT=1G\n", "ring_dir": "export MEMTRACE_RING_DIR=/tmp\n"}.get(what, "")
    field, value = {"group": ("job.group", "<I"), "leader": ("job.leader_start", "<Q"), "boot": ("boot_id", "4s"),
                    "namespace": ("job.pid_ns", "<Q"), "supervised": ("flags", "<I")}.get(what, (None, None))
    if field:  # as if that had been another one's
        at = mt.session_offset(field)
        data = struct.pack(value, b"beef" if value == "4s" else 2).hex()
        data = "".join("\\\\x" + data[i:i + 2] for i in range(0, len(data), 2))
        script += "LD_PRELOAD= printf \"%s\" | LD_PRELOAD= dd of=t/session bs=1 seek=%d conv=notrunc status=none\n" % (data, at)
    shell(script + "/bin/true\n", cwd)
    mt.equal(len(traces(cwd)), 2, "traces")


def case_leader_is_gone():
    """The first of a pipeline is its leader and has ended: for a while the group is the same one."""
    cwd = folder()
    shell("set -m\n" + EXPORT % (mt.SHIM, "t") + "/bin/true | (LD_PRELOAD= sleep 0.5; exec cat)", cwd)
    mt.equal(traces(cwd), ["t"])
    mt.equal(names(mt.Trace(os.path.join(cwd, "t"))), ["cat", "true"])


def case_same_numbers_elsewhere():
    """Two containers that share a folder: process group and session are 1 in both."""
    mt.need_root()
    cwd, unshare = folder(), mt.need("unshare")
    inner = "setsid -w env LD_PRELOAD=%s MEMTRACE_OUTPUT=t true" % mt.SHIM
    for _ in range(2):
        done = mt.plain([unshare, "--pid", "--fork", "--mount-proc", "sh", "-c", inner], cwd=cwd)
        if done.status:
            mt.skip("unshare: %s" % done.err)
    mt.equal(traces(cwd), ["t", "t.2"])


def case_without_rename_flags():
    """A file system that knows no RENAME_NOREPLACE: seccomp says EINVAL as such a one does."""
    cwd = folder()
    forbid = os.path.join(cwd, "forbid")
    source = r"""
#include <errno.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <stddef.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>
int main(int argc, char **argv)
{
	struct sock_filter f[] = {
		BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
		BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_renameat2, 0, 1),
		BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | EINVAL),
		BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
	};
	struct sock_fprog p = { sizeof(f) / sizeof(*f), f };
	if (argc < 2 || prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) || prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &p))
		return 9;
	return execv(argv[1], argv + 1);
}
"""
    built = mt.execute(["cc", "-x", "c", "-", "-o", forbid], stdin=source.encode())
    mt.check(built.status == 0, str(built))
    done = mt.plain([forbid, mt.need("bash"), "-c", EXPORT % (mt.SHIM, "t") + "for i in {1..10}; do /bin/true & done; wait"], cwd=cwd)
    if done.status == 9:
        mt.skip("no seccomp here")
    mt.equal(traces(cwd), ["t"])
    mt.equal(len(mt.Trace(os.path.join(cwd, "t")).processes), 10)


def case_disk_limit_of_all():
    """What one root process has used the next one can't use again."""
    cwd = folder()
    program = " ".join([mt.program("busy"), "400000", "200000", "16"])
    shell("export MEMTRACE_LIMIT=8M\n" + EXPORT % (mt.SHIM, "t") + 4 * (program + " >/dev/null 2>&1\n"), cwd)
    mt.equal(traces(cwd), ["t"])
    trace = mt.Trace(os.path.join(cwd, "t")).settle()
    mt.check(trace.bytes() < 12 << 20, "%d bytes where 8 MiB were allowed" % trace.bytes())
    mt.equal(names(trace).count("busy"), 4)


# ---- what a report is about -----------------------------------------------------------------------------------

HOLDS = " ".join([mt.program("busy"), "40000", "20000", "300"])  # about 3 MiB


def case_short_commands_are_one_row():
    """The first was cut, but that is not what the trace is about."""
    cwd = folder()
    shell(EXPORT % (mt.SHIM, "t") + "cut -c1 /dev/null; date; %s; ls; date\n" % HOLDS, cwd)
    trace = mt.Trace(os.path.join(cwd, "t")).intact()
    lines = trace.tool("report").out.splitlines()
    mt.check(lines[1].startswith("busy 40000"), "the title is %r" % lines[:2])
    start = next(i for i, line in enumerate(lines) if line.startswith("PROCESS"))
    mt.check(" busy 40000" in lines[start + 1], "first row is %r" % lines[start + 1])
    row = re.fullmatch(r" +4 short commands, at most ([\d.]+ KiB|\d+ B) each: (.*)", lines[start + 2])
    mt.check(row and set(row.group(2).split(", ")) == {"cut", "date", "ls"}, "folded row is %r" % lines[start + 2])
    mt.equal(names(trace), ["busy", "cut", "date", "date", "ls"])
    mt.equal([p["name"] for p in trace.json("report", "--process", "cut")["processes"]], ["cut"])


def case_killed_is_never_folded():
    """How it ended is known where the recorder looked between its end and its parent's wait."""
    cwd = folder()
    shell(EXPORT % (mt.SHIM, "t") + "date; ls; %s; sh -c 'kill -SEGV $$'\n" % HOLDS, cwd)
    out = mt.Trace(os.path.join(cwd, "t")).settle().tool("report").out
    mt.check(re.search(r"^ +\d+  sh -c kill.* (?:unknown|SIGSEGV) ", out, re.M) and "2 short commands" in out, out)


def report_title(text, cwd, command=("bash", "-c"), **env):
    done = shell(text, cwd, dict(env, PATH=mt.BUILD + ":" + os.environ["PATH"]), command)
    mt.equal(done.status, 0, "status of %s" % done)
    lines = done.out.splitlines()
    mt.check(lines[0].startswith("memtrace report "), "the first line is %r" % lines[0])
    return lines[1], done.err


def case_newest_is_worth_a_report():
    """Small commands after the program, and the other end of the pipe."""
    cwd = folder()
    script = "export LD_PRELOAD=%s\n%s >/dev/null 2>&1; LD_PRELOAD= sleep 1.5; ls >/dev/null; date >/dev/null\n" % (mt.SHIM, HOLDS)
    script += "memtrace report | head -2"
    title, err = report_title(script, cwd)
    mt.check(title.startswith("busy"), "the title is %r" % title)
    mt.check(re.fullmatch(r"memtrace: reading memtrace-busy-\S+; [23] newer are of short commands\n", err), "stderr is %r" % err)
    shell(HOLDS.replace("40000", "40001"), cwd, {"LD_PRELOAD": mt.SHIM})
    title, err = report_title("memtrace report", cwd)
    mt.check(title.startswith("busy 40001") and not err, "the title is %r, stderr %r" % (title, err))


def case_newest_is_not_the_reader_of_the_pipe():
    """It holds several MiB, but it is there for the report."""
    cwd = folder()
    reader = mt.python() + " -c 'import sys; held = [bytes(1000) for i in range(5000)]; sys.stdout.write(sys.stdin.read())'"
    script = "%s >/dev/null 2>&1; export LD_PRELOAD=%s; (LD_PRELOAD= sleep 0.5; exec memtrace report) | %s"
    shell(HOLDS, cwd, {"LD_PRELOAD": mt.SHIM})
    title, _ = report_title(script % ("true", mt.SHIM, reader), cwd)
    mt.check(title.startswith("busy 40000"), "the title is %r" % title)


def case_newest_of_small_ones():
    cwd = folder()
    shell("export LD_PRELOAD=%s; ls; date" % mt.SHIM, cwd)
    title, _ = report_title("memtrace report", cwd)
    mt.check(title.startswith("date"), "the title is %r" % title)


# ---- eval $(memtrace env) -------------------------------------------------------------------------------------

SHELLS = [name for name in ("bash", "dash", "zsh") if mt.shutil.which(name)]


@mt.variants(*SHELLS)
def case_env_in_a_shell(name):
    """What is typed between two runs is not recorded, nor is memtrace, and all can be taken back."""
    cwd = folder()
    script = """
        printenv | grep -v '^_=' | sort >before
        eval $(memtrace env)
        ls >/dev/null; date | head -1 >/dev/null
        %s >/dev/null 2>&1
        memtrace report | head -2
        eval $(memtrace env --undo)
        printenv | grep -v '^_=' | sort >after
        cmp before after
    """ % HOLDS
    title, err = report_title(script, cwd, (name, "-c"))
    mt.check(title.startswith("busy") and not err, "the title is %r, stderr %r" % (title, err))
    mt.equal([re.sub("-.*", "", t[len("memtrace-"):]) for t in traces(cwd)], ["busy"])


def case_env_says_how_to_undo():
    """As a comment, which eval skips: it must be the last line."""
    *lines, last = mt.execute([mt.MEMTRACE, "env"]).out.splitlines()
    mt.equal((last, [line for line in lines if not line.startswith("export ")]), ("# to undo: eval $(memtrace env --undo)", []), "what it prints")


def case_env_keeps_what_is_preloaded():
    libc = mt.library("libm.so.6")
    tool = "LD_PRELOAD='%s' %s env" % (libc, mt.MEMTRACE)
    mt.equal(shell("eval $(%s); echo $LD_PRELOAD" % tool, folder()).out, "%s %s\n" % (mt.SHIM, libc))
    mt.equal(shell("eval $(%s); eval $(%s env --undo); echo $LD_PRELOAD" % (tool, mt.MEMTRACE), folder()).out, libc + "\n")


def case_env_excludes():
    def exclude(given="", **env):
        return shell("eval $(%s env %s); echo $MEMTRACE_EXCLUDE" % (mt.MEMTRACE, given), folder(), env).out.strip()
    mt.check({"ls", "date", "head", "less", "git"} <= set(exclude().split(",")), exclude())
    mt.check(not {"sh", "bash", "python", "test", "sort"} & set(exclude().split(",")), exclude())
    mt.equal(exclude("--exclude ls,x"), "ls,x")
    mt.equal(exclude(MEMTRACE_EXCLUDE="mine"), "mine")


def case_memtrace_is_not_recorded():
    """Under any name, with all it starts."""
    cwd, tools = folder(), mt.scratch("tools")
    for source, name in ((mt.MEMTRACE, "renamed"), (mt.SHIM, "libmemtrace.so")):
        mt.shutil.copy(source, os.path.join(tools, name))
    output = mt.shimmed(HOLDS.split()).trace.settle().path
    for tool in (mt.MEMTRACE, os.path.join(tools, "renamed")):
        script = "export LD_PRELOAD=%s\n" % mt.SHIM
        script += "".join("%s %s %s\n" % (tool, command, output) for command in ("report", "peak", "leaks", "check", "symbolize"))
        done = shell(script + "%s run -o r -- %s; %s --version" % (tool, mt.program("busy") + " 1 1 1", tool), cwd)
        mt.equal(done.status, 0, "status of %s" % done)
        mt.equal(traces(cwd), ["r"])
        mt.equal(names(mt.Trace(os.path.join(cwd, "r"))), ["busy"])
        mt.shutil.rmtree(os.path.join(cwd, "r"))
    traced = shell("cp %s memtrace; LD_PRELOAD=%s ./memtrace 1 1 1" % (mt.program("busy"), mt.SHIM), cwd)
    mt.equal([t.split("-")[1] for t in traces(cwd)], ["memtrace"], "somebody else's program of that name, %s" % traced)


# ---- threads that run no Python -------------------------------------------------------------------------------

def line_of(program, text):
    with open(os.path.join(mt.TOP, "tests/programs", program), encoding="utf-8") as file:
        return next(i for i, line in enumerate(file, 1) if text in line)


@mt.variants("named", "unnamed")
def case_pool_of_threads(how):
    """Who made an array is said by its thread's name, or the function it was started with, and by where the main thread was then."""
    script = os.path.join(mt.TOP, "tests/programs/poolarrays.py")
    trace = mt.same([mt.python(), script, os.path.join(mt.BUILD, "tests/programs/libpool.so")] + ["array_pool"] * (how == "named"))
    name = "array_pool" if how == "named" else os.path.basename(mt.python())[:15]
    out = trace.tool("peak", "-n", "1").out
    for function, text, size in (("weights", "pool_make(8", "8.[01] MiB"), ("batch", "pool_make(4", "4.[01] MiB")):
        where = "poolarrays.py:%d" % line_of("poolarrays.py", text)
        mt.check(re.search(r"%s in .*\n.*make_array .*\n.*pool_worker .*\n +< thread %s, main was at %s +%s\n" %
                           (size, re.escape(name), function, where), out), "no %s at %s in\n%s" % (size, where, out))
    out, role = trace.tool("report").out, "array_pool" if how == "named" else "of pool_worker"
    mt.check(re.search(r"make_array +libpool.c:\d+\n +< thread %s, main was at weights +poolarrays.py:\d+\n" % role, out), out)
    sites = [s for s in trace.sites("peak") if any(f["function"] == "make_array" for f in s["stack"])]
    mt.equal(sum(s["bytes"] for s in sites), (12 << 20) + 100 * 1000, "bytes of the pool's arrays")
    mt.equal(sum(s["blocks"] for s in sites), 1012, "blocks of the pool's arrays")
    last = {tuple(f[k] for k in ("function", "language")) for s in sites for f in s["stack"][-1:]}
    mt.equal(last, {("thread " + name, "thread")}, "outermost frames")
    mt.between(2, len(sites), 20, "stacks: a thread that makes small blocks looks at the main thread now and then")


mt.main(at_once=2)
