#!/usr/bin/env python3
"""The build itself: other compilers, what is installed, and the message about a missing header."""
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


@mt.long
def case_clang_builds_everything():
    clang = compiler("clang", *("clang-%d" % n for n in range(22, 13, -1)))
    make(mt.scratch("clang"), "CC=" + clang, "CFLAGS=-O0", "all")  # its warnings don't depend on the optimizer


def case_cross_compiles_the_shim_for_aarch64():
    folder = mt.scratch("aarch64")
    make(folder, "CC=" + compiler("aarch64-linux-gnu-gcc"), "CFLAGS=-O0", folder + "/libmemtrace.so")
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
