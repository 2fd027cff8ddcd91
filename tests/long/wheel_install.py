#!/usr/bin/env python3
"""The wheel, as pip unpacks it: in a fresh environment of every Python that is found it records, by both ways, and reports. It asks for
glibc 2.17 and for no other library; what is in it is what it lists. cases/wheel.py runs the one for aarch64."""
# timeout: 400
import base64
import glob
import hashlib
import json
import os
import re
import sys
import zipfile

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "../lib"))
import mt
import wheels

MANYLINUX = {"libc.so.6", "libm.so.6", "libdl.so.2", "libpthread.so.0", "librt.so.1"}  # of PEP 599; and the loader


def case_every_python():
    wheels.every_python(wheels.here(), libraries="built in")


@mt.variants("x86_64", "aarch64")
def case_asks_for_glibc_2_17_alone(machine):
    folder, readelf = wheels.unpacked(machine), mt.need("readelf")
    for name in ("bin/memtrace", "lib/libmemtrace.so", "lib/libmemtrace_libascend_kernel_hook.so"):
        path = os.path.join(folder, name)
        mt.check(os.stat(path).st_mode & 0o111, "%s can't be run" % name)
        needed = set(re.findall(r"\(NEEDED\).*\[(.*)\]", mt.execute([readelf, "-d", path]).out))
        mt.check(needed and {n for n in needed if not n.startswith("ld-linux")} <= MANYLINUX, "%s needs %s" % (name, needed))
        asked = {tuple(map(int, v.split("."))) for v in re.findall(r"Name: GLIBC_([\d.]+)", mt.execute([readelf, "-V", path]).out)}
        mt.check(asked and max(asked) <= (2, 17), "%s asks for glibc %s" % (name, max(asked)))
        head = mt.execute([readelf, "-h", path]).out
        mt.check({"x86_64": "X86-64", "aarch64": "AArch64"}[machine] in head, head)


@mt.variants("x86_64", "aarch64")
def case_holds_what_it_lists(machine):
    """RECORD, licences and the bill of materials, each against the files; no path of this machine is in any."""
    with zipfile.ZipFile(wheels.wheel(machine)) as archive:
        names = archive.namelist()
        (info,) = {n.split("/")[0] for n in names if ".dist-info/" in n}
        rows = dict(line.split(",", 1) for line in archive.read(info + "/RECORD").decode().splitlines())
        mt.equal(set(rows), set(names), "files of RECORD")
        for name, row in rows.items():
            content = archive.read(name)
            wanted = "sha256=%s,%d" % (base64.urlsafe_b64encode(hashlib.sha256(content).digest()).rstrip(b"=").decode(), len(content))
            mt.equal(row, "," if name.endswith("/RECORD") else wanted, name)
            mt.check(mt.TOP.encode() not in content, "%s has %s in it" % (name, mt.TOP))
        meta = archive.read(info + "/METADATA").decode()
        listed = {"%s/licenses/%s" % (info, name) for name in re.findall(r"^License-File: (.*)$", meta, re.M)}
        mt.equal(listed, {n for n in names if "/licenses/" in n}, "licences")
        mt.check("elfutils" in archive.read(info + "/licenses/SOURCES").decode(), "where the source is")
        bill = json.loads(archive.read(info + "/sboms/libmemtrace.cdx.json"))
        mt.equal((bill["bomFormat"], bill["specVersion"]), ("CycloneDX", "1.6"))
        for part in bill["components"]:
            if part["type"] == "file":
                inside = re.sub(r"^bin/", "scripts/", part["name"]) if part["name"].startswith("bin/") else "data/" + part["name"]
                content = archive.read(info.replace(".dist-info", ".data/") + inside)
                mt.equal(part["hashes"][0]["content"], hashlib.sha256(content).hexdigest(), part["name"])
        linked = {c["name"] for c in bill["components"] if c["type"] == "library"}
        mt.check({"libdw-dev", "libelf-dev", "libzstd-dev", "zlib1g-dev", "libjansson-dev"} <= linked, linked)
        refs = {c["bom-ref"] for c in bill["components"]} | {bill["metadata"]["component"]["bom-ref"]}
        mt.check(all({d["ref"], *d["dependsOn"]} <= refs for d in bill["dependencies"]), "dependencies of nobody")


def imported():
    """{package: its row of npm's lock file} of what the page's sources import, with what that depends on."""
    with open(os.path.join(mt.TOP, "page/package-lock.json"), encoding="utf-8") as file:
        lock = json.load(file)["packages"]
    found, wanted = {}, []
    for path in glob.glob(os.path.join(mt.TOP, "page/src/*.js")):
        with open(path, encoding="utf-8") as file:
            wanted += re.findall(r"^import (?:.* from )?\"((?:@[^/\"]+/)?[^./\"][^/\"]*)", file.read(), re.M)
    while wanted:
        name = wanted.pop()
        if name not in found:
            found[name] = lock["node_modules/" + name]
            wanted += found[name].get("dependencies", ())
    return found


@mt.variants("x86_64", "aarch64")
def case_lists_what_the_page_is_made_of(machine):
    """npm's packages: each with version, licence and sum as npm's lock file has them, and its licence's text; no other. Of what the scripts
    import nobody calls what d3-scale needs internmap for, so its code, which has a name of its own, is left out."""
    with open(os.path.join(wheels.unpacked(machine), "bin/memtrace"), "rb") as file:
        program = file.read()
    with zipfile.ZipFile(wheels.wheel(machine)) as archive:
        (info,) = {n.split("/")[0] for n in archive.namelist() if ".dist-info/" in n}
        bill = json.loads(archive.read(info + "/sboms/libmemtrace.cdx.json"))
        licences, meta = archive.read(info + "/licenses/page/LICENSES").decode(), archive.read(info + "/METADATA").decode()
    listed = {c["name"]: c for c in bill["components"] if c.get("purl", "").startswith("pkg:npm/")}
    texts = dict(text.split("\n", 1) for text in licences.split("\n\n----\n\n"))
    wanted = imported()
    mt.check({"uplot", "d3-flame-graph", "d3-scale", "internmap"} <= set(wanted), sorted(wanted))
    if b"._intern" not in program:
        del wanted["internmap"]
    mt.equal(sorted(listed), sorted(wanted), "packages")
    (uses,) = [d["dependsOn"] for d in bill["dependencies"] if d["ref"] == "bin/memtrace"]
    (spoken,) = re.findall(r"^License-Expression: (.*)$", meta, re.M)
    for name, row in wanted.items():
        part = listed[name]
        sum_of = "sha512-" + base64.b64encode(bytes.fromhex(part["hashes"][0]["content"])).decode()
        mt.equal((part["version"], part["licenses"], part["purl"], sum_of), (row["version"], [{"expression": row["license"]}], "pkg:npm/%s@%s" % (name, row["version"]), row["integrity"]), name)
        head = "%s %s (%s)" % (name, row["version"], row["license"])
        mt.check(head.encode() + b"\n" in program and "opyright" in texts[head], "%s is not in the program, or its licence not in the wheel" % head)
        mt.check(part["bom-ref"] in uses and row["license"] in spoken.split(" AND "), "%s: %s; %s" % (name, uses, spoken))


def case_packed_twice_it_is_the_same():
    machine = os.uname().machine
    made = []
    for name in ("a", "b"):
        out = os.path.join(mt.scratch("again"), name)
        done = mt.execute([os.path.join(mt.TOP, "scripts/wheel"), "--machine", machine, "--built", os.path.join(mt.BUILD, "wheel", machine), "--share", os.path.join(mt.BUILD, "share"),
                           "--libraries", os.path.join(mt.TOP, "build/wheel", machine, "root"), "--out", out], env=mt.clean_env(TZ=name, PYTHONHASHSEED=str(len(made) + 1)))
        mt.equal(done.status, 0, done)
        with open(os.path.join(out, os.path.basename(wheels.here())), "rb") as file:
            made.append(file.read())
    mt.check(made[0] == made[1], "packed twice, two wheels")


mt.main()
