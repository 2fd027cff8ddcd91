"""A build server: it starts a job of its own every few moments, more than one at a time, and each ends by itself with 0; twin: one after another"""
# truth: none
import subprocess
import sys
import time

JOB = "import time; data = bytearray(40 << 20); time.sleep(1.2)"
ONE = "twin" in sys.argv


def start():
    return subprocess.Popen([sys.executable, "-c", JOB])


def main():
    jobs = []
    for _ in range(4 if ONE else 8):
        jobs.append(start())
        if ONE:
            jobs[-1].wait()
        time.sleep(0.12)
    for job in jobs:
        job.wait()


main()
