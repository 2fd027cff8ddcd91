#!/usr/bin/env python3
"""10,000 mutants of tests/fuzz, four commands on each, on all processors; docs/FUZZING.md says what of. FUZZ_MUTANTS takes fewer."""
# timeout: 14000
import os
import sys

TESTS = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..")
sys.path[:0] = [os.path.join(TESTS, "lib"), os.path.join(TESTS, "fuzz")]
import fuzzing
import mt

FIRST, MUTANTS = 100_000, int(os.environ.get("FUZZ_MUTANTS", "10000"))


def case_mutants():
    summary = fuzzing.fuzz(range(FIRST, FIRST + MUTANTS), count=4, on_wrong=lambda result: print("# %s" % str(result)[:3000]))
    print("\n".join("# " + line for line in summary.lines()))
    mt.equal(summary.mutants, MUTANTS, "mutants")
    mt.check(not summary.wrong, "%d mutants with complaints: tests/fuzz/run --seed %d shows the first" %
             (len(summary.wrong), summary.wrong[0].seed if summary.wrong else 0))


mt.main()
