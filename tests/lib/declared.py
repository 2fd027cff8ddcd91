"""The vendor's headers against a table of hooks (shim/hooks/hooks_NAME.def): what a compiler says of tests/NAME/decl.c, which declares the table's
functions beside theirs, and what tests/NAME/layout.c prints of structures, theirs and ours."""
import os
import re
import subprocess

import mt


class Headers:
    def __init__(self, name, folders):
        """FOLDERS to include; the first one is the vendor's."""
        self.name, self.folders = name, folders

    def compile(self, source, *options):
        include = ["-isystem" + folder for folder in self.folders]
        return subprocess.run(["cc", "-std=gnu11", "-I" + mt.TOP, *include, os.path.join(mt.TOP, "tests", self.name, source), *options],
                              stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)

    def known(self):
        """Functions of the table that the headers declare, in the same way."""
        done = self.compile("decl.c", "-fsyntax-only", "-Wredundant-decls")
        mt.equal(done.returncode, 0, "cc says %s: status" % done.stdout[-2000:])
        return set(re.findall(r"redundant redeclaration of .(\w+).", done.stdout))

    def check_wrong_is_noticed(self, right, wrong):
        """Of a table with another declaration the compiler says so."""
        table = "shim/hooks/hooks_%s.def" % self.name
        with open(os.path.join(mt.TOP, table)) as file:
            text = file.read()
        mt.check(right in text, "the table has no %s now" % right)
        folder = mt.scratch("wrong")
        os.makedirs(os.path.join(folder, "shim/hooks"))
        with open(os.path.join(folder, table), "w") as file:
            file.write(text.replace(right, wrong))
        done = self.compile("decl.c", "-fsyntax-only", "-iquote", folder)
        mt.check(done.returncode != 0 and "conflicting types for" in done.stdout, "cc says %r" % done.stdout[-500:])

    def layout(self, *options):
        binary = os.path.join(mt.scratch("layout"), "layout")
        done = self.compile("layout.c", "-o", binary, *options)
        mt.equal(done.returncode, 0, "cc says %s: status" % done.stdout[-2000:])
        return subprocess.run([binary], stdout=subprocess.PIPE, text=True, check=True).stdout
