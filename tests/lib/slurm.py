"""Slurm on this machine alone, as a user without rights may start it."""
import glob
import os
import pwd
import signal
import socket
import subprocess
import time

import mt

SLURM = """
ClusterName=memtrace
SlurmctldHost=localhost
SlurmctldPort=%(ctld_port)d
SlurmdPort=%(node_port)d
SlurmUser=%(user)s
SlurmdUser=%(user)s
AuthInfo=socket=%(folder)s/munge.socket
StateSaveLocation=%(folder)s/state
SlurmdSpoolDir=%(folder)s/spool
SlurmctldPidFile=%(folder)s/slurmctld.pid
SlurmdPidFile=%(folder)s/slurmd.pid
ProctrackType=proctrack/pgid
TaskPlugin=task/none
MailProg=/bin/true
NodeName=localhost CPUs=%(cpus)d State=UNKNOWN
PartitionName=all Nodes=ALL Default=YES State=UP
"""


def free_ports(count):
    """All open at once, so that they differ."""
    sockets = [socket.socket() for _ in range(count)]
    for s in sockets:
        s.bind(("127.0.0.1", 0))
    ports = [s.getsockname()[1] for s in sockets]
    for s in sockets:
        s.close()
    return ports


class Cluster:
    """munged, slurmctld and slurmd while it is open, with so many CPUs; `env` is for srun and sbatch."""

    def __init__(self, cpus):
        self.cpus = cpus

    def __enter__(self):
        munged, slurmctld, slurmd = (mt.need(name) for name in ("munged", "slurmctld", "slurmd"))
        mt.need("srun")
        self.folder, self.daemons = mt.scratch("slurm"), []
        for name in ("state", "spool"):
            os.mkdir(os.path.join(self.folder, name))
        with open(os.open(self.file("munge.key"), os.O_WRONLY | os.O_CREAT, 0o400), "wb") as key:
            key.write(os.urandom(1024))
        ctld_port, node_port = free_ports(2)
        with open(self.file("slurm.conf"), "w") as conf:
            conf.write(SLURM % {"ctld_port": ctld_port, "node_port": node_port, "user": pwd.getpwuid(os.geteuid()).pw_name, "folder": self.folder, "cpus": self.cpus})
        self.env = {"SLURM_CONF": self.file("slurm.conf")}
        try:
            # --force: the folder is nobody else's to enter, as the rest of a test's
            self.start(munged, "--foreground", "--force", "--socket", self.file("munge.socket"), "--key-file", self.file("munge.key"), "--pid-file", self.file("munge.pid"),
                       "--seed-file", self.file("munge.seed"), "--log-file", self.file("munge.log"))
            self.wait("munged", lambda: os.path.exists(self.file("munge.socket")))
            self.start(slurmctld, "-D", "-c")
            self.start(slurmd, "-D", "-N", "localhost")
            self.wait("slurmd", lambda: mt.execute(["sinfo", "--noheader", "--format=%T"], env=mt.clean_env(**self.env)).out == "idle\n")
        except BaseException:
            self.__exit__()
            raise
        return self

    def file(self, name):
        return os.path.join(self.folder, name)

    def start(self, *command):
        with open(self.file(os.path.basename(command[0]) + ".out"), "wb") as out:
            self.daemons.append(subprocess.Popen(command, env=mt.clean_env(**self.env), stdin=subprocess.DEVNULL, stdout=out, stderr=out))

    def wait(self, what, ready):
        end = time.monotonic() + mt.WAIT
        while not ready():
            ended = [d.args[0] for d in self.daemons if d.poll() is not None]
            if ended or time.monotonic() > end:
                mt.fail("%s does not come; ended: %s; they said %s" % (what, ended, self.said()))
            time.sleep(0.2)

    def said(self):
        found = {}
        for path in glob.glob(self.file("*.out")):
            with open(path, errors="replace") as file:
                found[os.path.basename(path)] = file.read()[-2000:]
        return found

    def __exit__(self, *exception):
        for daemon in reversed(self.daemons):
            daemon.send_signal(signal.SIGTERM)
            try:
                daemon.wait(30)
            except subprocess.TimeoutExpired:
                daemon.kill()
                daemon.wait()
