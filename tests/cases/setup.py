#!/usr/bin/env python3
"""scripts/setup on machines that lack something, which are made of a PATH with stand-ins for apt-get, sudo and python; and the Makefile's own
promises: help, several goals at once, a path with a blank."""
import glob
import json
import os
import pty
import re
import shutil
import subprocess
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "../lib"))
import mt

TOOLS = ("sh awk sed grep cut tail du dirname basename readlink env mkdir rm sleep flock timeout tr cat touch find cp chmod ls head sort true").split()
PACKAGES = "gcc make libc6-dev libdw-dev libzstd-dev zlib1g-dev libjansson-dev libiberty-dev uthash-dev".split()
OF_CHECK = "g++ binutils libunwind-dev redis-server nodejs libdebuginfod-dev zstd".split()

# Each finds the machine's folder in $MACHINE.
STANDINS = {
    "id": 'echo "${FAKE_UID:-0}"',
    "dpkg-query": 'for last; do :; done; grep -qx "$last" "$MACHINE/installed" && echo "install ok installed"',
    "sudo": '[ -e "$MACHINE/may-sudo" ] || exit 1; [ "$1" != -n ] || shift; exec "$@"',
    "apt-get": """
echo "$*" >>"$MACHINE/apt"
case " $* " in
*" update "*) [ ! -e "$MACHINE/locked" ] || { rm "$MACHINE/locked"; echo "E: Could not get lock /var/lib/apt/lists/lock"; exit 100; }
	touch "$MACHINE/has-lists"; exit ;;
esac
[ ! -e "$MACHINE/unpacks" ] || { printf 'Unpacking gcc ...\\r\\n'; sleep 2.5; }
[ -e "$MACHINE/has-lists" ] || { echo "E: Unable to locate package"; exit 100; }
for word; do case $word in
	-* | install) ;;
	*) echo "$word" >>"$MACHINE/installed" ;;
esac; done
! grep -qx python3-venv "$MACHINE/installed" || cp "$MACHINE/python" "$MACHINE/bin/python3"
""",
}
PYTHON = r"""#!/bin/sh
echo "$*" >>"$MACHINE/python.log"
case "$*" in
"-c ") ;;
-V) echo Python 3.11.2 ;;
*"import ensurepip, venv") [ ! -e "$MACHINE/no-venv" ] ;;
"-m venv "*) mkdir -p "$3/bin" && cp "$MACHINE/python" "$3/bin/python" ;;
*"import torch, numpy") [ -e "${0%/*}/has-torch" ] ;;
*"import greenlet" | *"import pandas") ;;
"- ") cat >/dev/null ;;
"-m pip index versions"*) [ -e "$MACHINE/cpu-index" ] && echo "torch (2.13.0+cpu)" ;;
"-m pip install"*--report*) echo "$*" >"$MACHINE/asked" ;;
*scripts/downloads*) case $(cat "$MACHINE/asked") in
	*--no-deps*) echo "$(cat "$MACHINE/kind") 1 530" ;;
	*--extra-index-url*) echo cpu 12 241 ;;
	*) [ "$(cat "$MACHINE/kind")" = cpu ] && echo cpu 12 241 || echo cuda 30 2758 ;;
	esac ;;
*"torch==2.13.0"*)
	[ ! -e "$MACHINE/fails" ] || { echo "ERROR: No matching distribution"; exit 1; }
	[ ! -e "$MACHINE/slow" ] || { head -c 3000000 /dev/zero >"$TMPDIR/part"; sleep 3; }
	echo "Downloading torch"
	touch "${0%/*}/has-torch" ;;
esac
"""


def script(path, text):
    with open(path, "w", encoding="utf-8") as file:
        file.write(text if text.startswith("#!") else "#!/bin/sh\n" + text + "\n")
    os.chmod(path, 0o755)


class Machine:
    """Nothing but a shell and its tools; `has` are more commands, `state` the stand-ins' switches."""

    def __init__(self, *has, packages=(), kind="cpu", state=()):
        self.folder = mt.scratch("machine")
        self.bin, self.tree = os.path.join(self.folder, "bin"), os.path.join(self.folder, "tree")
        os.makedirs(self.tree + "/scripts")
        os.mkdir(self.bin)
        for name in ("setup", "deps", "downloads"):
            shutil.copy(os.path.join(mt.TOP, "scripts", name), self.tree + "/scripts")
        for tool in TOOLS:
            os.symlink(mt.need(tool), os.path.join(self.bin, tool))
        for name in ("id", "dpkg-query", "apt-get", *has):
            if name in STANDINS:
                script(os.path.join(self.bin, name), STANDINS[name])
        script(os.path.join(self.folder, "python"), PYTHON)
        if "python3" in has:
            shutil.copy(os.path.join(self.folder, "python"), os.path.join(self.bin, "python3"))
        for name in state:
            self.write(name, "")
        self.write("installed", "".join(p + "\n" for p in packages))
        self.write("kind", kind)

    def write(self, name, text):
        with open(os.path.join(self.folder, name), "w", encoding="utf-8") as file:
            file.write(text)

    def read(self, name):
        try:
            with open(os.path.join(self.folder, name), encoding="utf-8") as file:
                return file.read()
        except FileNotFoundError:
            return ""

    def env(self, **more):
        return {"PATH": self.bin, "MACHINE": self.folder, "SETUP_TICK": "1", **more}

    def command(self, *groups):
        return [self.tree + "/scripts/setup", *groups]

    def setup(self, *groups, **env):
        return mt.execute(self.command(*groups), env=self.env(**env))


def fine(done):
    mt.equal(done.status, 0, "status of %s" % done)
    return done.err


# ---- packages ---------------------------------------------------------------------------------------------------


def case_python_is_installed_with_the_rest():
    machine = Machine(state=["has-lists"])
    err = fine(machine.setup("build", "demo"))
    mt.check("installing gcc make" in err and "python3 python3-venv" in err, err)
    fine(machine.setup("build", "demo"))
    mt.equal(len(machine.read("apt").splitlines()), 1, "calls of apt-get install, with everything there the second time")


def case_nothing_is_installed_where_nothing_lacks():
    machine = Machine("python3", packages=PACKAGES)
    fine(machine.setup("build", "demo"))
    mt.equal(machine.read("apt"), "", "calls of apt-get")


def case_lists_are_fetched_and_waited_for():
    machine = Machine("python3", packages=PACKAGES[1:], state=["locked"])
    err = fine(machine.setup("build", "demo"))
    mt.check("another apt is running; waiting" in err, err)
    for call in machine.read("apt").splitlines():
        mt.check("DPkg::Lock::Timeout=" in call, call)


def case_progress_of_packages_is_said():
    """dpkg writes as on a terminal: its lines end in two characters."""
    err = fine(Machine("python3", packages=PACKAGES[1:], state=["unpacks", "has-lists"]).setup("build", "demo"))
    mt.check("setup: 1 s, Unpacking gcc ...\n" in err, err)


def asked(*groups, has=(), **options):
    """The line that who has no rights is told to type."""
    done = Machine(*has, **options).setup(*groups, FAKE_UID="1000")
    mt.equal((done.status, len(done.err.splitlines())), (1, 1), "status, lines of %s" % done)
    return done.err.strip()


@mt.variants(("build", "demo"), ("build", "demo", "check", "gpu"))
def case_everything_is_named_at_once(*groups):
    line = asked(*groups)
    wanted = PACKAGES + ["python3", "python3-venv"] + (OF_CHECK if "check" in groups else [])
    mt.equal([p for p in wanted if p not in line.split()], [], "not named in: " + line)


def case_sudo_only_where_there_is_one():
    fetched = glob.glob("/var/lib/apt/lists/*_Packages*")
    update = {prefix: "" if fetched else prefix + "apt-get update && " for prefix in ("", "sudo ")}
    for has, prefix, words in (((), "", "run as root:  "), (("sudo",), "sudo ", "run:  ")):
        line = asked("build", "demo", has=has)
        mt.check(line.startswith("setup: packages are missing; %s%s%sapt-get install -y gcc" % (words, update[prefix], prefix)), line)


def case_venv_alone_is_missing():
    """Debian's python3 without python3-venv."""
    line = asked("build", "demo", has=["python3"], packages=PACKAGES, state=["no-venv"])
    mt.check(line.endswith("install -y python3-venv"), line)


def case_sudo_is_used():
    machine = Machine("sudo", "python3", packages=PACKAGES[1:], state=["may-sudo", "has-lists"])
    fine(machine.setup("build", "demo", FAKE_UID="1000"))
    mt.check("install --no-install-recommends gcc" in machine.read("apt"), machine.read("apt"))


def case_unknown_interpreter():
    done = Machine("python3", packages=PACKAGES).setup("build", "demo", PYTHON="python2.7")
    mt.equal((done.status, done.err), (1, "setup: PYTHON=python2.7: no such command\n"))


def case_missing_compiler_names_its_package():
    machine = Machine()
    done = mt.execute([machine.tree + "/scripts/deps", "--shim"], env=machine.env())
    mt.equal(done.status, 1, "status")
    mt.check("cc is missing; it is in the Debian package gcc\n" in done.err, done.err)
    mt.check(re.search("to install:  apt-get install gcc( |$)", done.err, re.M), done.err)


def case_make_names_the_compiler_s_package():
    folder = mt.scratch()
    done = mt.execute(["make", "-C", mt.TOP, "B=" + folder, "CC=no-such-cc"], env=mt.clean_env(MAKEFLAGS=""))
    mt.equal(done.status, 2, "status")
    mt.check("memtrace: no-such-cc is missing" in done.err and "No such file" not in done.err, done.err)


# ---- PyTorch ----------------------------------------------------------------------------------------------------


def brought(kind, state=(), **env):
    """What is said, and what pip is asked to install at last."""
    machine = Machine("python3", packages=PACKAGES, kind=kind, state=state)
    err = fine(machine.setup("build", "demo", **env))
    return err, [line for line in machine.read("python.log").splitlines() if " numpy" in line and "--report" not in line and "install" in line][-1]


def case_the_cpu_s_build_that_the_index_has():
    err, pip = brought("cpu", state=["cpu-index"])
    mt.check("PyTorch for the CPU into build/venv, with python3 (Python 3.11.2): 12 packages, 241 MB" in err, err)
    mt.check("--extra-index-url" not in pip, pip)


def case_the_cpu_s_build_of_pytorch_s_index():
    err, pip = brought("cuda", state=["cpu-index"])
    mt.check("PyTorch for the CPU into build/venv" in err and "241 MB" in err, err)
    mt.check("--extra-index-url https://download.pytorch.org/whl/cpu torch==" in pip, pip)


def case_the_cuda_build_where_there_is_no_other():
    err, pip = brought("cuda")
    mt.check("PyTorch's CUDA build" in err and "30 packages, 2758 MB" in err and "TORCH_INDEX=" in err, err)
    mt.check("--extra-index-url" not in pip, pip)


def case_the_index_that_is_named():
    err, pip = brought("cuda", state=["cpu-index"], TORCH_INDEX="https://example.org/cpu")
    mt.check("--extra-index-url https://example.org/cpu torch==" in pip, pip)
    mt.check("241 MB" in err, err)


def case_progress_is_said():
    err, _ = brought("cpu", state=["slow"])
    mt.check(re.search(r"^setup: 1 s, \d+ MB so far\nsetup: 2 s, [23] MB so far$", err, re.M), err)


def case_progress_of_pip_on_a_terminal():
    machine = Machine("python3", packages=PACKAGES)
    mine, theirs = pty.openpty()
    child = subprocess.Popen(machine.command("build", "demo"), env=machine.env(), stdin=subprocess.DEVNULL, stdout=theirs, stderr=theirs)
    os.close(theirs)
    text = b""
    try:
        while part := os.read(mine, 4096):
            text += part
    except OSError:
        pass  # how the end of a terminal reads
    mt.equal(child.wait(mt.WAIT), 0, "status")
    mt.check(b"Downloading torch" in text, text)


def case_why_it_failed():
    done = Machine("python3", packages=PACKAGES, state=["fails"]).setup("build", "demo")
    mt.equal(done.status, 1, "status")
    mt.check("ERROR: No matching distribution" in done.err and "PYTHON= and TORCH_INDEX=" in done.err, done.err)


def package(name, path, **metadata):
    return {"download_info": {"url": "file://" + path}, "metadata": {"name": name, **metadata}}


@mt.variants(("cuda", "nvidia-cudnn-cu13==9; platform_system == 'Linux'"), ("cpu", "nvidia-cudnn-cu13==9; platform_system == 'Plan 9'"),
             ("cpu", "sympy"))
def case_what_pip_would_download(kind, requirement):
    folder = mt.scratch()
    sizes = {"torch": 3000000, "numpy": 1600000}
    for name, size in sizes.items():
        with open(os.path.join(folder, name), "wb") as file:
            file.truncate(size)
    report = {"install": [package("torch", folder + "/torch", requires_dist=[requirement]), package("numpy", folder + "/numpy")]}
    with open(os.path.join(folder, "report"), "w", encoding="utf-8") as file:
        json.dump(report, file)
    downloads = [os.path.join(mt.VENV, "bin/python"), os.path.join(mt.TOP, "scripts/downloads"), os.path.join(folder, "report")]
    if not os.path.exists(downloads[0]):
        mt.skip("no environment")
    mt.equal(mt.execute(downloads).out, kind + " 2 5\n")
    os.remove(folder + "/numpy")
    mt.equal(mt.execute(downloads).out, kind + " 2 3+\n", "with a size that can't be had")


# ---- make -------------------------------------------------------------------------------------------------------


def make(folder, *arguments, env=None):
    env = {k: v for k, v in (env or os.environ).items() if k not in ("MAKEFLAGS", "MFLAGS", "MAKELEVEL", "CC", "CFLAGS", "B", "VENV", "VENV_GPU")}
    return mt.execute(["make", "-C", folder, *arguments], env=env, timeout=100)


def case_npm_s_packages_run_on_debian_12():
    """Whose node is 18."""
    with open(os.path.join(mt.TOP, "page/package-lock.json"), encoding="utf-8") as file:
        packages = json.load(file)["packages"]
    least = {name: int(re.search(r">=\s*(\d+)", one["engines"]["node"])[1]) for name, one in packages.items() if "node" in one.get("engines", {})}
    mt.check(len(least) > 20 and max(least.values()) <= 18, "%s" % {name: n for name, n in least.items() if n > 18})


def case_help():
    done = make(mt.TOP, "--no-print-directory", "help")
    mt.equal((done.status, done.err), (0, ""), "status, errors")
    for goal in ("demo", "check", "check-long", "install", "uninstall", "clean", "help"):
        mt.check("  make %s " % goal in done.out, "no %s in %s" % (goal, done.out))
    mt.check("distclean" in done.out and "TORCH_INDEX" in done.out and "#" not in done.out, done.out)


def case_nothing_is_made_for_help():
    """Sources that are newer than what was built from them, as after a pull."""
    for source in ("tests/standin/cuda/runtime.c", "analyzer/util/error.h"):
        done = make(mt.TOP, "--no-print-directory", "-W", source, "help")
        mt.equal((done.status, done.err), (0, ""), "status, errors where %s is new" % source)


def case_clean_keeps_what_took_long_to_fetch():
    folder = os.path.join(mt.scratch("clean"), "build")
    for name in ("venv/bin", "venv-gpu/lib", "page", "analyzer", "tests/programs"):
        os.makedirs(os.path.join(folder, name))
        with open(os.path.join(folder, name, "file"), "w", encoding="ascii"):
            pass
    mt.equal(make(mt.TOP, "clean", "B=" + folder).status, 0, "status of make clean")
    mt.equal(sorted(os.listdir(folder)), ["page", "venv", "venv-gpu"], "left by make clean")
    mt.equal(make(mt.TOP, "distclean", "B=" + folder).status, 0, "status of make distclean")
    mt.check(not os.path.exists(folder), "left by make distclean")


# Makes nothing but the file; says so when two do that at once.
COMPILER = """
while [ $# -gt 0 ] && [ "$1" != -o ]; do shift; done
[ $# -gt 0 ] || exit 0
mkdir "$2.busy" 2>/dev/null || { echo "$2" >>"$TWICE"; exit 0; }
sleep 0.05
: >"$2"
chmod +x "$2"
rmdir "$2.busy"
"""


def tree(path):
    """What make sees of the sources, in a place of its own."""
    os.makedirs(path)
    for name in ("Makefile", "memtrace.h", "shim", "analyzer", "format", "page", "examples", "scripts"):
        source = os.path.join(mt.TOP, name)
        (shutil.copytree if os.path.isdir(source) else shutil.copy2)(source, os.path.join(path, name))
    for pattern in ("unwind", "standin", "unit", "programs"):
        shutil.copytree(os.path.join(mt.TOP, "tests", pattern), os.path.join(path, "tests", pattern))
    return path


@mt.variants("demo demo-gpu all standin", "all standin tests", "clean all install")
def case_several_goals_at_once(goals):
    """No file is built by two at once."""
    folder = mt.scratch()
    place, twice = tree(os.path.join(folder, "tree")), os.path.join(folder, "twice")
    script(os.path.join(folder, "cc"), COMPILER)
    for name in ("setup", "demo", "demo-gpu", "deps"):
        script(os.path.join(place, "scripts", name), "exit 0")
    script(os.path.join(place, "tests/unwind/random_program.py"), "exit 0")
    done = make(place, "-j8", *goals.split(), "CC=" + folder + "/cc", "CXX=" + folder + "/cc", "AR=true", "VENV_GPU=none", "DESTDIR=" + folder + "/to",
                env={**os.environ, "TWICE": twice})
    mt.equal(done.status, 0, "status of %s" % done)
    mt.check(not os.path.exists(twice), "built by two at once")
    mt.check(os.path.exists(place + "/build/memtrace"), "nothing was built")


def case_demo_in_a_path_with_a_blank():
    if not mt.has_module("torch") or not mt.has_module("numpy"):
        mt.skip("no environment")
    place = tree(os.path.join(mt.scratch(), "a b"))
    for name in ("shim", "analyzer", "format", "libmemtrace.so", "libmemtrace_libascend_kernel_hook.so", "memtrace", ".deps", ".compiler"):
        mt.equal(mt.execute(["cp", "-a", os.path.join(mt.BUILD, name), os.path.join(place, "build", "")] if os.path.isdir(place + "/build") else
                            ["sh", "-c", 'mkdir "$2" && cp -a "$1" "$2"', "-", os.path.join(mt.BUILD, name), place + "/build"]).status, 0, "status of cp")
    os.symlink(mt.VENV, place + "/build/venv")
    with open(place + "/examples/train.py", "w", encoding="utf-8") as file:
        file.write("kept = bytearray(20000000)\nprint('trained')\n")
    done = make(place, "demo")
    mt.equal((done.status, "cannot be preloaded" in done.err), (0, False), "status, and what the loader says, of %s" % done)
    mt.check("trained\n" in done.out and re.search(r"19\.\d MiB .*<module> +train.py:1", done.out), done.out)


mt.main()
