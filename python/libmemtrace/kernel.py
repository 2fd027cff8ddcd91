"""A kernel for Jupyter that is recorded: python -m libmemtrace.kernel install

It is this Python under `memtrace run`, as the kernel "memtrace" beside the others of this user (--sys-prefix: of this environment). The
trace of a notebook is memtrace-notebook-PID in its folder.
"""
import argparse
import importlib.util
import json
import os
import sys
from typing import Any, Dict

from . import trace


def spec(command: str) -> Dict[str, Any]:
    python = [sys.executable, "-m", "ipykernel_launcher", "-f", "{connection_file}", "--IPKernelApp.extra_extensions=libmemtrace"]
    return {"display_name": "Python %d, recorded by memtrace" % sys.version_info[0], "language": "python",
            "argv": [command, "run", "--no-report", "-o", "memtrace-notebook-%p", "--", *python]}


def home() -> str:
    """Where Jupyter looks for what is of this user."""
    data = os.environ.get("XDG_DATA_HOME") or os.path.join(os.path.expanduser("~"), ".local/share")
    return os.environ.get("JUPYTER_DATA_DIR") or os.path.join(data, "jupyter")


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m libmemtrace.kernel", description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("what", choices=["install", "uninstall"])
    parser.add_argument("--sys-prefix", action="store_true", help="into this environment, not for this user")
    args = parser.parse_args()
    beside = os.path.join(os.path.dirname(sys.executable), "memtrace")
    command = beside if os.access(beside, os.X_OK) else trace.program()
    folder = os.path.join(os.path.join(sys.prefix, "share/jupyter") if args.sys_prefix else home(), "kernels/memtrace")
    path = os.path.join(folder, "kernel.json")
    try:
        if args.what == "uninstall":
            if os.path.exists(path):
                os.remove(path)
                os.rmdir(folder)
            return 0
        if command is None:
            print("the command memtrace is neither in PATH nor beside %s" % sys.executable, file=sys.stderr)
            return 1
        os.makedirs(folder, exist_ok=True)
        with open(path, "w", encoding="utf-8") as file:
            json.dump(spec(os.path.abspath(command)), file, indent=1)
    except OSError as error:
        print("%s: %s" % (error.filename, error.strerror), file=sys.stderr)
        return 1
    print(path)
    if importlib.util.find_spec("ipykernel") is None:
        print("the kernel will not start before ipykernel is installed for %s" % sys.executable, file=sys.stderr)
    return 0


if __name__ == "__main__":
    sys.exit(main())
