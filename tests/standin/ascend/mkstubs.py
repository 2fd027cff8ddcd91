#!/usr/bin/env python3
"""Makes a CANN on which the real torch_npu runs: mkstubs.py TORCH_NPU TORCH OUT

TORCH_NPU and TORCH are the installed packages' folders. OUT/cann gets the stand-in's libraries under all the names that torch_npu needs; what
they don't have of its undefined symbols is a function that returns 0. Prints the number of those.
"""
import glob
import os
import subprocess
import sys

HERE = os.path.dirname(os.path.abspath(__file__))
TOP = os.path.dirname(os.path.dirname(os.path.dirname(HERE)))
SONAMES = ("hccl", "acl_op_compiler", "ge_runner", "graph", "atb", "acl_tdt_channel")
# torch_npu asks for these by dlsym and won't start without them.
ASKED = ("aclrtSetDeviceSatMode", "aclSetCompileopt", "aclrtCtxSetSysParamOpt", "aclrtSetOpExecuteTimeOut",
         "aclrtSynchronizeDeviceWithTimeout", "aclrtDestroyStreamForce")
SYSTEM = ("libc.so.6", "libm.so.6", "libstdc++.so.6", "libgcc_s.so.1", "libpthread.so.0", "librt.so.1", "libdl.so.2", "ld-linux-x86-64.so.2",
          "ld-linux-aarch64.so.1")


def symbols(path, *options):
    listing = subprocess.run(["nm", "-D", *options, path], stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True).stdout
    return {line.split()[-1].split("@")[0]: line.split()[-2] for line in listing.splitlines() if line.split()}


def system_libraries():
    listing = subprocess.run(["/sbin/ldconfig", "-p"], stdout=subprocess.PIPE, text=True).stdout
    return [line.split()[-1] for line in listing.splitlines() if line.split() and line.split()[0] in SYSTEM and ("x86-64" in line or "AArch64" in line)]


def wanted(torch_npu, torch):
    """Undefined in torch_npu and defined in nothing that is there."""
    own = [f for f in glob.glob(torch_npu + "/lib/*.so") + glob.glob(torch_npu + "/_C*.so") if "op_plugin_atb" not in f]
    undefined = {s for f in own for s, kind in symbols(f, "--undefined-only").items() if kind == "U"}
    there = own + glob.glob(torch + "/lib/*.so*") + system_libraries()
    for path in there:
        undefined -= symbols(path, "--defined-only").keys()
    return {s for s in undefined if not s.startswith(("Py", "_Py", "_Z", "__"))}


def compile_library(name, out, sources):
    subprocess.run([os.environ.get("CC", "cc"), "-w", "-O1", "-g", "-shared", "-fPIC", "-I" + TOP, "-D_GNU_SOURCE", "-Wl,-soname,lib%s.so" % name,
                    "-o", os.path.join(out, "lib%s.so" % name), *sources, "-ldl", "-lpthread"], check=True)


def main():
    torch_npu, torch, out = sys.argv[1:]
    libraries = os.path.join(out, "cann/lib64")
    for folder in ("lib64", "opp", "runtime", "compiler"):
        os.makedirs(os.path.join(out, "cann", folder), exist_ok=True)
    stubs, extras = os.path.join(out, "stubs.c"), os.path.join(HERE, "extras.c")
    core = [os.path.join(HERE, f) for f in ("acl.c", "rt.c", "hal.c", "extras.c", "../cuda/shared.c")]
    compile_library("ascendcl", libraries, core)
    real = symbols(os.path.join(libraries, "libascendcl.so"), "--defined-only").keys()
    names = sorted((wanted(torch_npu, torch) | set(ASKED)) - real)
    with open(stubs, "w") as file:
        for name in names:
            file.write("long %s(void) { return 0; }\n" % name)
    compile_library("ascendcl", libraries, core + [stubs])
    for name in SONAMES:
        compile_library(name, libraries, [extras, stubs])
    compile_library("ms_tools_ext", libraries, [os.path.join(HERE, "mstx.c")])
    print(len(names))


if __name__ == "__main__":
    main()
