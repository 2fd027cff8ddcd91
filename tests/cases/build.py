#!/usr/bin/env python3
"""The build itself: other compilers, the layers, what is installed, and the message about a missing header."""
# timeout: 300
import os
import shutil
import subprocess
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "../lib"))
import mt


def make(folder, *arguments, **more):
    env = {k: v for k, v in os.environ.items() if k not in ("MAKEFLAGS", "MFLAGS", "MAKELEVEL", "CC", "CFLAGS")}
    env.update(more)
    done = mt.execute(["make", "-C", mt.TOP, "B=" + folder, *arguments], env=env, timeout=280)
    mt.check(done.status == 0, "make %s: %s" % (" ".join(arguments), done.err[-600:]))
    return done


def compiler(*names):
    for name in names:
        if shutil.which(name):
            return name
    mt.skip("%s is not installed" % names[0])


def case_clang_builds_everything():
    clang = compiler("clang", *("clang-%d" % n for n in range(22, 13, -1)))
    make(mt.scratch("clang"), "CC=" + clang, "CFLAGS=-O0", "all")  # its warnings don't depend on the optimizer


def case_cross_compiles_the_shim_for_aarch64():
    folder = mt.scratch("aarch64")
    make(folder, "CC=" + compiler("aarch64-linux-gnu-gcc"), folder + "/libmemtrace.so")
    head = subprocess.run(["readelf", "-h", folder + "/libmemtrace.so"], stdout=subprocess.PIPE, text=True, check=True).stdout
    mt.check("AArch64" in head, "not an aarch64 file: " + head)


def case_generic_needs_neither_assembly_nor_libunwind():
    """The port without a folder of its own, built here: libunwind is loaded when it runs, and what takes assembly isn't wrapped."""
    folder = mt.scratch("generic")
    done = make(folder, "ARCH=generic", "CFLAGS=-O0", folder + "/libmemtrace.so")
    mt.check(".S.o" not in done.out, "assembly: " + done.out)
    shown = subprocess.run(["nm", "-D", "--defined-only", folder + "/libmemtrace.so"], stdout=subprocess.PIPE, text=True, check=True).stdout
    names = {line.split()[2].split("@")[0] for line in shown.splitlines()}
    mt.equal([n for n in ("malloc", "_Znwm", "dlsym", "syscall") if n in names], ["malloc", "_Znwm"], "exported")
    done = mt.execute([os.path.join(mt.TOP, "scripts/layers"), folder], cwd=mt.TOP)
    mt.equal((done.status, done.out), (0, ""), "scripts/layers")


def case_layers_are_kept_apart():
    done = mt.execute([os.path.join(mt.TOP, "scripts/layers"), mt.BUILD], cwd=mt.TOP)
    mt.equal((done.status, done.out), (0, ""), "scripts/layers")


# The file, what is added to it, what is said of it.
BREACHES = {
    "an include upwards": ("analyzer/model/model.h", '#include "analyzer/report/report.h"\n', "includes report/report.h"),
    "another room's own header": ("analyzer/model/model.c", '#include "analyzer/reader/reader_internal.h"\n', "which is reader's own"),
    "an include upwards by another path": ("analyzer/model/model.h", '#include "../report/report.h"\n', "by another path"),
    "an include upwards in angle brackets": ("analyzer/model/model.h",
                                             "#include <analyzer/report/report.h>\n", "includes report/report.h"),
    "an include upwards in a table": ("analyzer/symbols/categories.def", '#include "analyzer/report/report.h"\n', "includes report/report.h"),
    "the recorder above util": ("analyzer/recorder/fold.c", '#include "analyzer/model/model.h"\n', "includes model/model.h"),
    "a file in no room": ("analyzer/new.c", "int x;\n", "is in no room"),
    "a foreign guard": ("analyzer/util/new.h", "#ifndef MT_NEW_H\n#define MT_NEW_H\n#endif\n", "is not MT_UTIL_NEW_H"),
    "a print of its own": ("analyzer/report/open.c", 'void f(void) { printf("x"); }\n', "printed past"),
    "output that is led elsewhere": ("analyzer/report/open.c", "void f(FILE *f) { stdout = f; }\n", "assigns stdout"),
    "a shim that knows the analyzer": ("shim/trace/ring.h", '#include "analyzer/util/vec.h"\n', "shim includes analyzer"),
    "an include upwards in the shim": ("shim/base/clock.h", '#include "shim/trace/ring.h"\n', "includes trace/ring.h"),
    "an include upwards in a table of the shim": ("shim/base/libc.def", '#include "shim/host/heap.h"\n', "includes host/heap.h"),
    "an include upwards in a port": ("shim/arch/generic/stack.c", '#include "shim/trace/record.h"\n', "includes trace/record.h"),
    "a port's header above arch": ("shim/arch/x86_64/arch.h", '#include "shim/base/sys.h"\n', "includes base/sys.h"),
    "a file of the shim in no room": ("shim/new.c", "int x;\n", "is in no room"),
    "a foreign guard in the shim": ("shim/stack/new.h", "#ifndef MT_NEW_H\n#define MT_NEW_H\n#endif\n", "is not MT_STACK_NEW_H"),
    "an include of the shim by another path": ("shim/stack/unwind.c", '#include "rules.h"\n', "by another path"),
    "a port that knows the analyzer": ("shim/arch/generic/stack.c", '#include "analyzer/util/vec.h"\n', "shim includes analyzer"),
}


@mt.variants(*BREACHES)
def case_layers_refuse(what):
    """Each rule about the sources is tried: one file breaks it, and one line names that file."""
    path, text, said = BREACHES[what]
    folder = mt.scratch("layers")
    for name in ("analyzer", "shim", "format", "scripts"):
        shutil.copytree(os.path.join(mt.TOP, name), os.path.join(folder, name))
    with open(os.path.join(folder, path), "a", encoding="utf-8") as file:
        file.write(text)
    done = mt.execute([folder + "/scripts/layers", folder + "/none"])
    mt.equal((done.status, done.out.count("\n")), (1, 1), "status and lines of " + done.out)
    mt.check(path in done.out and said in done.out, done.out)


# Objects by room, what is said of them.
CALLS = {
    "a call upwards": ({"analyzer/util/low": "int high(void); int low(void) { return high(); }",
                        "analyzer/report/high": "int high(void) { return 1; }"}, "util/low.o uses high of report/high.o"),
    "a circle of calls": ({"analyzer/report/a": "int b(void); int a(void) { return b(); }",
                           "analyzer/report/b": "int a(void); int b(void) { return a(); }"}, "call each other in a circle"),
    "a call upwards in the shim": ({"shim/base/low": "int high(void); int low(void) { return high(); }",
                                    "shim/device/high": "int high(void) { return 1; }"}, "base/low uses high of device/high"),
    "a variable of a room above in the shim": ({"shim/stack/low": "extern int high; int low(void) { return high; }",
                                                "shim/trace/high": "int high = 1;"}, "stack/low uses high of trace/high"),
    "a call upwards in a port": ({"shim/arch/generic/stack": "int high(void); int low(void) { return high(); }",
                                  "shim/python/high": "int high(void) { return 1; }"}, "stack/stack uses high of python/high"),
    "a circle of calls in the shim": ({"shim/base/a": "int b(void); int a(void) { return b(); }",
                                       "shim/base/b": "int a(void); int b(void) { return a(); }"}, "call each other in a circle"),
}
# What only looks like a call upwards or a circle.
NO_CALLS = {
    "a call of libc by a name that is hooked": {
        "shim/base/low": "void free(void *); void low(void *p) { free(p); }", "shim/host/host": "void free(void *p) { (void)p; }"},
    "one module in two languages": {"shim/host/new": "int b(void); int a(void) { return b(); }",
                                    "shim/arch/x86_64/new": "int a(void); int b(void) { return a(); }"},
    "an object whose source has gone": {"shim/base/gone.c": "int high(void); int low(void) { return high(); }",
                                        "shim/device/high": "int high(void) { return 1; }"},
}


def layers_of_objects(sources):
    folder = mt.scratch("calls")
    for name, text in sources.items():
        path = os.path.join(folder, name)
        os.makedirs(os.path.dirname(path), exist_ok=True)
        mt.equal(mt.execute([mt.need("cc"), "-xc", "-c", "-o", path + ".o", "-"], stdin=text.encode()).status, 0, "status of cc")
    return mt.execute([os.path.join(mt.TOP, "scripts/layers"), folder])


@mt.variants(*CALLS)
def case_layers_refuse_calls(what):
    sources, said = CALLS[what]
    done = layers_of_objects(sources)
    mt.check(done.status == 1 and said in done.out, "%s: %s" % (what, done))


@mt.variants(*NO_CALLS)
def case_layers_allow_calls(what):
    done = layers_of_objects(NO_CALLS[what])
    mt.equal((done.status, done.out), (0, ""), "scripts/layers")


def case_the_tree_is_formatted():
    formatter = os.path.join(mt.VENV, "bin/clang-format")
    if not os.path.exists(formatter):
        mt.skip("clang-format is not installed")
    make(mt.BUILD, "check-format", "CLANG_FORMAT=" + formatter)
    folder = mt.scratch("format")
    shutil.copy(os.path.join(mt.TOP, ".clang-format"), folder)
    with open(os.path.join(folder, "a.c"), "w", encoding="utf-8") as file:
        file.write("int  f(void) { return 1 ; }\n")
    mt.equal(mt.execute([formatter, "--dry-run", "-Werror", file.name]).status, 1, "status where it is not")


def files_in(folder):
    return {os.path.relpath(os.path.join(d, f), folder) for d, _, fs in os.walk(folder) for f in fs}


def case_install_puts_files_in_their_places_and_uninstall_takes_them():
    folder = os.path.join(mt.scratch("install"), "a b")
    make(mt.BUILD, "install", "PREFIX=/opt/x", "DESTDIR=" + folder)
    wanted = {"bin/memtrace", "lib/libmemtrace.so", "include/memtrace.h", "share/memtrace/memtrace.py"}
    mt.check({"opt/x/" + name for name in wanted} <= files_in(folder), "installed: %s" % files_in(folder))
    with open(folder + "/opt/x/lib/libother.so", "w", encoding="utf-8"):
        pass
    make(mt.BUILD, "uninstall", "PREFIX=/opt/x", "DESTDIR=" + folder)
    mt.equal(files_in(folder), {"opt/x/lib/libother.so"}, "left")


@mt.variants(True, False)
def case_install_makes_the_loader_find_it(found):
    """ldconfig is run; where the loader still doesn't look the path to type is said. Never for another root."""
    folder = mt.scratch("install")
    log, prefix = os.path.join(folder, "log"), os.path.join(folder, "usr")
    with open(os.path.join(folder, "ldconfig"), "w", encoding="utf-8") as script:
        script.write("#!/bin/sh\necho \"$*\" >>%s\n[ \"$1\" != -p ] || echo \"libmemtrace.so (libc6,x86-64) => %s/lib/libmemtrace.so\"\n"
                     % (log, prefix if found else "/elsewhere"))
    os.chmod(script.name, 0o755)
    path = {"PATH": folder + ":" + os.environ["PATH"]}
    make(mt.BUILD, "install", "DESTDIR=" + folder + "/root", **path)
    mt.check(not os.path.exists(log), "ldconfig was run for another root")
    done = make(mt.BUILD, "install", "PREFIX=" + prefix, **path)
    with open(log, encoding="utf-8") as file:
        mt.equal(file.read(), "\n-p\n", "calls of ldconfig")
    mt.equal("LD_PRELOAD=%s/lib/libmemtrace.so" % prefix in done.out, not found, "the full path is said")


def case_installed_command_finds_the_shim():
    folder = mt.scratch("install")
    make(mt.BUILD, "install", "PREFIX=/", "DESTDIR=" + folder)
    done = mt.execute([folder + "/bin/memtrace", "run", "-o", folder + "/t", "--", "/bin/true"])
    mt.equal(done.status, 0, "status of memtrace run: %s" % done)


def case_found_in_debians_folders():
    """The program finds the library in lib/TRIPLET, the library the program: it starts a recorder, which compresses."""
    folder, triplet = mt.scratch("install"), os.uname().machine + "-linux-gnu"
    make(mt.BUILD, "install", "PREFIX=/usr", "DESTDIR=" + folder, "LIBDIR=lib/" + triplet)
    done = mt.execute([folder + "/usr/bin/memtrace", "run", "-o", folder + "/t", "--", "/bin/true"])
    mt.equal(done.status, 0, "status of memtrace run: %s" % done)
    said = mt.shimmed(["true"], shim="%s/usr/lib/%s/libmemtrace.so" % (folder, triplet), env={"MEMTRACE_VERBOSE": "1"}).err
    mt.check("no recorder" not in said, said)


def case_missing_header_names_its_package():
    # A compiler that finds no header stands for a machine without the packages.
    cc = os.path.join(mt.scratch("cc"), "cc")
    with open(cc, "w", encoding="utf-8") as script:
        script.write("#!/bin/sh\nexit 1\n")
    os.chmod(cc, 0o755)
    done = mt.execute([os.path.join(mt.TOP, "scripts/deps")], env=mt.clean_env(CC=cc))
    mt.equal(done.status, 1, "status")
    mt.check("<zstd.h> is missing; it is in the Debian package libzstd-dev" in done.err, done.err)


mt.main()
