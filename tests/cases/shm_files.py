#!/usr/bin/env python3
"""Files in /dev/shm, which are counted for the whole machine: no other test may make some meanwhile."""
# serial
import os
import re
import subprocess
import sys
sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "../lib"))
import mt
from cgroup import Cgroup

MIB = 1 << 20


def held(trace, kind):
    return [v for v in trace.report["verdicts"] if v["kind"] == kind]


@mt.variants((), ("left",), ("others",))
def case_files_in_shm(*left):
    """Written, not mapped: nobody's pages. The table is of the moment when all are there; what is not removed is a finding, where the program has
    anything to do with files there."""
    done = mt.shimmed([mt.program("shmfiles"), "256", "2", *left])
    try:
        done.trace.settle()
        report = done.trace.report
        # of the whole machine: others may have some, too
        mt.between(232 * MIB, report["system"]["ledger"]["shm_files"], 512 * MIB, "files in shm")
        found = held(done.trace, "files_left")
        mt.equal(len(found), left == ("left",), "files that were left")
        for verdict in found:
            mt.between(240 * MIB, verdict["bytes"], 512 * MIB, "left")
    finally:
        if left:
            os.unlink(done.out.split()[0])


def case_files_of_others_are_not_left():
    """Somebody in another cgroup fills /dev/shm meanwhile."""
    with Cgroup(512 * MIB) as group:
        other = subprocess.Popen([mt.program("shmfiles"), "256", "1", "left"], stdout=subprocess.PIPE, text=True)
        try:
            done = mt.shimmed(group.command([mt.program("once"), "80", "0", "3"]))
            done.trace.settle()
            mt.equal((done.status, held(done.trace, "files_left")), (0, []), "status, files left")
        finally:
            other.wait()
            os.unlink(other.stdout.readline().strip())


def case_who_made_them():
    """Batches in shared memory, mapped by who makes them and by who reads them: hundreds of MiB nobody has mapped, and the first line is named."""
    done = mt.shimmed([sys.executable, os.path.join(mt.TOP, "tests/programs/truth/shm_batches.py")])
    done.trace.settle()
    maker = done.trace.report["system"]["shm_maker"]
    mt.equal((maker["files"], maker["bytes"]), (160, 320 * MIB), "files and bytes of %s" % maker)
    mt.check(maker["site"].endswith(" hand_over"), maker["site"])
    mt.check("  made in /dev/shm: 160 files, 320.0 MiB, by shm_batches.py:" in done.trace.tool("report", "--all").out, done.trace.tool("report", "--all").out)
    grows = [f for f in done.trace.report["facts"] if f["kind"] == "grows"]
    mt.check(len(grows) == 1 and " hand_over makes more and more files in /dev/shm" in grows[0]["evidence"], grows)
    mt.between(310 * MIB, grows[0]["bytes"], 320 * MIB, "bytes there at once of %s" % grows)
    mt.check("hand_over makes more and more files in /dev/shm" in re.sub(r"\s+", " ", done.trace.tool("report").out), done.trace.tool("report").out)
    leaks = done.trace.tool("leaks", "--fail-over", "1M/s")
    mt.check(leaks.status and " hand_over makes files in /dev/shm: " in leaks.err, "%s, %s" % (leaks.status, leaks.err))
    mt.check(re.search(r"\nGROWTH  more and more files in /dev/shm\n  shm_batches.py:\d+ hand_over makes them: 160, 320.0 MiB, ", leaks.out), leaks.out)
    mt.equal(done.trace.json("leaks")["shm"]["files"], 160, "files")


@mt.variants("ahead", long=["twin", "ring"])
def case_files_that_go_again_do_not_grow(how):
    """Each batch is unlinked once it was read, also where 16 are made ahead; and a ring of buffers is made once."""
    done = mt.shimmed([sys.executable, os.path.join(mt.TOP, "tests/programs/truth/shm_batches.py"), how])
    done.trace.settle()
    mt.equal([f for f in done.trace.report["facts"] if "/dev/shm" in f["evidence"]], [], how)
    mt.equal(done.trace.json("leaks")["shm"], None, how)


def case_workers_of_one_line_are_added_up():
    done = mt.shimmed([sys.executable, os.path.join(mt.TOP, "tests/programs/truth/shm_workers.py")])
    done.trace.settle()
    maker = done.trace.report["system"]["shm_maker"]
    mt.equal((maker["files"], maker["bytes"], maker["processes"]), (120, 120 * MIB, 3), "files, bytes and processes of %s" % maker)
    screen = done.trace.tool("report", "--all").out
    mt.check(re.search(r"  made in /dev/shm: 120 files, 120.0 MiB, by shm_workers.py:\d+ work in 3 processes", screen), screen)


mt.main()
