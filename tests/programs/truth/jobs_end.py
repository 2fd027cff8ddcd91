"""A build server: it starts a job of its own every few moments, more than one at a time, and each ends by itself with 0"""
# truth: none
import subprocess
import sys
import time

JOB = "import time; data = bytearray(20 << 20); time.sleep(4.2)"


def main():
    jobs = []
    for _ in range(9):
        jobs.append(subprocess.Popen([sys.executable, "-c", JOB]))
        time.sleep(0.5)
    for job in jobs:
        job.wait()


main()
