#!/usr/bin/env python3
"""README's two commands on machines that were never used: Debian 12 and 13 from debootstrap, with git, make and certificates and nothing else.
They are given what this machine reaches package registries with: its resolver, certificates, apt's and pip's configuration."""
# serial
# timeout: 10800
import contextlib
import glob
import os
import re
import shutil
import subprocess
import sys
import tempfile

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "../lib"))
import mt

PLACE = "/root/a b/memtrace"  # a path with a blank, where demo has to work
CERTIFICATES = ("PIP_CERT", "SSL_CERT_FILE", "REQUESTS_CA_BUNDLE")
# In namespaces of its own, so that no mount outlives it. $0 is the root; the words until -- are folders of this machine that it needs.
ENTER = """
set -e
mount -t proc proc "$0/proc"
mount -t sysfs sys "$0/sys"
mount --rbind /dev "$0/dev"
while [ "$1" != -- ]; do mkdir -p "$0$1"; mount --rbind "$1" "$0$1"; shift; done
shift
exec chroot "$0" "$@"
"""


def pip_settings():
    done = mt.execute([sys.executable, "-m", "pip", "config", "list"])
    return dict(re.findall(r"^(\S+?)='(.*)'$", done.out, re.M)) if done.status == 0 else {}


def settings():
    """(environment, pip.conf, folders that both name). What :env: has stands in front of files."""
    found = pip_settings()
    merged = {}
    for prefix in ("global.", "site.", "user.", "install.", ":env:."):
        merged.update({key[len(prefix):]: value for key, value in found.items() if key.startswith(prefix)})
    merged.pop("cert", None)
    config = "[global]\n" + "".join("%s = %s\n" % (key, value.replace("\\n", " ")) for key, value in merged.items())
    folders = {path[len("file://"):] if path.startswith("file://") else path
               for key in ("find-links", "index-url", "extra-index-url") for path in merged.get(key, "").replace("\\n", " ").split()}
    # an index of files names files beside it
    folders = {os.path.dirname(f) if os.path.basename(f.rstrip("/")) == "simple" else f for f in folders}
    env = {name: "/etc/ssl/certs/ca-certificates.crt" for name in CERTIFICATES if os.environ.get(name) or found.get("global.cert")}
    env.update({name: value for name, value in os.environ.items() if re.fullmatch(r"(?i)(https?|no|all)_proxy|TORCH_INDEX", name)})
    return env, config, sorted(f for f in folders if os.path.isdir(f))


class Root:
    def __init__(self, suite, path):
        self.path = path
        self.env, config, self.folders = settings()
        done = mt.execute([mt.need("debootstrap"), "--variant=minbase", "--include=git,make,ca-certificates", suite, path], timeout=1200)
        if done.status != 0:
            mt.skip("debootstrap %s: %s" % (suite, (done.out + done.err)[-200:]))
        for name in ("/etc/resolv.conf", "/etc/hosts", "/etc/ssl/certs/ca-certificates.crt", *glob.glob("/usr/local/share/ca-certificates/*.crt")):
            if os.path.exists(name):
                shutil.copy(name, path + name)
        with open(path + "/etc/pip.conf", "w", encoding="utf-8") as file:
            file.write(config)
        mt.equal(mt.execute(["git", "clone", "-q", mt.TOP, path + PLACE]).status, 0, "status of git clone")

    def run(self, command, timeout, user="root"):
        """As a shell of that user would, in the clone; everything it says is kept in the build folder."""
        words = ["env", "-i", "PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin", "TERM=dumb", "HOME=/root" if user == "root" else "HOME=/tmp", *("%s=%s" % p for p in self.env.items())]
        words += ["sh", "-c", 'cd "$1" && %s' % command, "-", PLACE]
        if user != "root":
            words = ["setpriv", "--reuid=1000", "--regid=1000", "--clear-groups"] + words
        with tempfile.TemporaryFile() as output:
            child = subprocess.Popen(["unshare", "--mount", "--pid", "--fork", "--kill-child", "--propagation", "private", "sh", "-c", ENTER,
                                      self.path, *self.folders, "--", *words], stdin=subprocess.DEVNULL, stdout=output, stderr=subprocess.STDOUT)
            try:
                status = child.wait(timeout)
            except subprocess.TimeoutExpired:
                child.kill()
                status = "none after %d s" % timeout
            output.seek(0)
            text = output.read().decode(errors="replace")
        with open(os.path.join(mt.BUILD, "fresh-%s.log" % os.path.basename(self.path)), "a", encoding="utf-8") as log:
            log.write("$ %s\n%s\n" % (command, text))
        return status, text


@contextlib.contextmanager
def fresh(suite):
    mt.need_root()
    mt.need("unshare")
    # not in /tmp, which may be small or without devices; mounts of a child that hangs must not be removed with it
    folder = tempfile.mkdtemp(prefix="fresh-", dir=mt.BUILD)
    try:
        yield Root(suite, os.path.join(folder, suite))
    finally:
        subprocess.run(["rm", "-rf", "--one-file-system", folder])


def everything_is_asked_for_at_once(root):
    """Who has no rights is told one line to type, and needs no other."""
    os.chmod(root.path + "/root", 0o755)
    mt.equal(mt.execute(["chown", "-R", "1000:1000", root.path + PLACE]).status, 0, "status of chown")
    status, text = root.run("make demo", 300, user="somebody")
    lines = [line for line in text.splitlines() if line.startswith("setup: ")]
    mt.check(status == 2 and len(lines) == 1, "status %s: %s" % (status, text[-600:]))
    mt.check("python3-venv" in lines[0] and "sudo" not in lines[0] and "as root:" in lines[0], lines[0])
    typed = lines[0].partition("as root:")[2].strip()
    status, text = root.run("{ %s; } >/dev/null 2>&1" % typed, 1200)
    mt.equal(status, 0, "status of %s" % typed)


@mt.variants("bookworm", "trixie")
def case_two_commands(suite):
    with fresh(suite) as root:
        user = "root"
        if suite == "bookworm":
            everything_is_asked_for_at_once(root)
            user = "somebody"
        status, text = root.run("make demo", 3600, user)
        mt.check(status == 0 and "LARGEST OWNERS" in text, "make demo: status %s: %s" % (status, text[-1500:]))
        said = re.search(r"^setup: PyTorch.* into .*: \d+ packages, (\d+)\+? MB$", text, re.M)
        mt.check(said and int(said[1]) > 50, "what is downloaded is not said: %s" % text[:1500])
        # the tests preload libraries, which no path with a blank can be
        status, _ = root.run("cp -a . /root/memtrace && chown -R 0:0 /root/memtrace && rm -rf /root/memtrace/build/venv", 300)
        mt.equal(status, 0, "status of cp")
        status, text = root.run("cd /root/memtrace && make -j$(nproc) check", 5400)
        last = text.strip().splitlines()[-1] if text.strip() else ""
        failed = [line for line in text.splitlines() if ": not ok - " in line]
        mt.check(status == 0 and " 0 failed" in last, "make check: status %s, %s: %s" % (status, last, "; ".join(failed)[:2000]))


mt.main()
