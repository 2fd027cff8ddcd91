"""Machines that were never used: Debian from debootstrap, in namespaces of its own. They are given what this machine reaches package
registries with: its resolver, certificates, apt's and pip's configuration."""
import contextlib
import glob
import os
import re
import shutil
import subprocess
import sys
import tempfile

import mt

CERTIFICATES = ("PIP_CERT", "SSL_CERT_FILE", "REQUESTS_CA_BUNDLE")
# In namespaces of its own, so that no mount outlives it. $0 is the root; the words until -- are folders of this machine that it needs.
ENTER = """
set -e
mount -t proc proc "$0/proc"
mount -t sysfs sys "$0/sys"
mount --rbind /dev "$0/dev"
mount -t tmpfs shm "$0/dev/shm"
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
    """A Debian from debootstrap, minimal but for `packages`."""

    def __init__(self, suite, path, packages):
        self.path = path
        self.env, config, self.folders = settings()
        done = mt.execute([mt.need("debootstrap"), "--variant=minbase", "--include=" + ",".join(packages), suite, path], timeout=1200)
        if done.status != 0:
            mt.skip("debootstrap %s: %s" % (suite, (done.out + done.err)[-200:]))
        for name in ("/etc/resolv.conf", "/etc/hosts", "/etc/ssl/certs/ca-certificates.crt", *glob.glob("/usr/local/share/ca-certificates/*.crt")):
            if os.path.exists(name):
                shutil.copy(name, path + name)
        with open(path + "/etc/pip.conf", "w", encoding="utf-8") as file:
            file.write(config)

    def run(self, command, timeout, user="root", place="/"):
        """As a shell of that user would, in the folder `place`; everything it says is kept in the build folder."""
        words = ["env", "-i", "PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin", "TERM=dumb", "HOME=/root" if user == "root" else "HOME=/tmp", *("%s=%s" % p for p in self.env.items())]
        words += ["sh", "-c", 'cd "$1" && %s' % command, "-", place]
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
def fresh(suite, packages):
    mt.need_root()
    mt.need("unshare")
    # not in /tmp, which may be small or without devices; mounts of a child that hangs must not be removed with it
    folder = tempfile.mkdtemp(prefix="fresh-", dir=mt.BUILD)
    try:
        yield Root(suite, os.path.join(folder, suite), packages)
    finally:
        subprocess.run(["rm", "-rf", "--one-file-system", folder])
