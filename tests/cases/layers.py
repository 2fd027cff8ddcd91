#!/usr/bin/env python3
"""scripts/layers: the order of rooms in analyzer/ and shim/, headers, guards, and what is printed by whom."""
import os
import shutil
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "../lib"))
import mt


def case_rooms_are_kept_apart():
    done = mt.execute([os.path.join(mt.TOP, "scripts/layers"), mt.BUILD], cwd=mt.TOP)
    mt.equal((done.status, done.out), (0, ""), "scripts/layers")


# The file, what is added to it, what is said of it.
BREACHES = {
    "an include upwards": ("analyzer/model/model.h", '#include "analyzer/report/screen/report.h"\n', "includes report/screen/report.h"),
    "another room's own header": ("analyzer/model/model.c", '#include "analyzer/reader/reader_internal.h"\n', "which is reader's own"),
    "an include upwards by another path": ("analyzer/model/model.h", '#include "../report/report.h"\n', "by another path"),
    "an include upwards in angle brackets": ("analyzer/model/model.h",
                                             "#include <analyzer/report/screen/report.h>\n", "includes report/screen/report.h"),
    "an include upwards in a table": ("analyzer/symbols/categories.def", '#include "analyzer/report/screen/report.h"\n', "includes report/screen/report.h"),
    "the recorder above util": ("analyzer/recorder/fold/fold.c", '#include "analyzer/model/model.h"\n', "includes model/model.h"),
    "an include upwards between rooms of one": ("analyzer/report/json/json.h", '#include "analyzer/report/screen/report.h"\n',
                                                "includes report/screen/report.h, which is in no room below"),
    "an include of the room around it": ("analyzer/diagnosis/ledger/host_memory.h", '#include "analyzer/diagnosis/evidence.h"\n',
                                         "includes diagnosis/evidence.h, which is in no room below"),
    "the own header of a room within": ("analyzer/diagnosis/copies.c", '#include "analyzer/diagnosis/ledger/host_memory_internal.h"\n',
                                        "which is diagnosis/ledger's own"),
    "the recorder's rings above its folding": ("analyzer/recorder/rings/ring_cut.c", '#include "analyzer/recorder/fold/fold.h"\n',
                                               "includes recorder/fold/fold.h"),
    "what prints below what it prints": ("analyzer/analysis/open.c", '#include "analyzer/report/json/json.h"\n', "includes report/json/json.h"),
    "a file beside the rooms of one": ("analyzer/report/new.c", "int x;\n", "is in no room"),
    "a foreign guard in a room within": ("analyzer/report/page/new.h", "#ifndef MT_PAGE_NEW_H\n#define MT_PAGE_NEW_H\n#endif\n",
                                         "is not MT_REPORT_PAGE_NEW_H"),
    "a print of its own in a room within": ("analyzer/report/json/json.c", 'void f(void) { printf("x"); }\n', "printed past"),
    "a file in no room": ("analyzer/new.c", "int x;\n", "is in no room"),
    "a foreign guard": ("analyzer/util/new.h", "#ifndef MT_NEW_H\n#define MT_NEW_H\n#endif\n", "is not MT_UTIL_NEW_H"),
    "a print of its own": ("analyzer/analysis/open.c", 'void f(void) { printf("x"); }\n', "printed past"),
    "output that is led elsewhere": ("analyzer/analysis/open.c", "void f(FILE *f) { stdout = f; }\n", "assigns stdout"),
    "a shim that knows the analyzer": ("shim/trace/ring.h", '#include "analyzer/util/vec.h"\n', "shim includes analyzer"),
    "an include upwards in the shim": ("shim/base/clock.h", '#include "shim/trace/ring.h"\n', "includes trace/ring.h"),
    "an include upwards in a table of the shim": ("shim/base/libc.def", '#include "shim/host/heap.h"\n', "includes host/heap.h"),
    "an include upwards in a port": ("shim/arch/generic/stack.c", '#include "shim/trace/record.h"\n', "includes trace/record.h"),
    "a port's header above arch": ("shim/arch/x86_64/arch.h", '#include "shim/base/sys.h"\n', "includes base/sys.h"),
    "a file of the shim in no room": ("shim/new.c", "int x;\n", "is in no room"),
    "a foreign guard in the shim": ("shim/stack/new.h", "#ifndef MT_NEW_H\n#define MT_NEW_H\n#endif\n", "is not MT_STACK_NEW_H"),
    "an include of the shim by another path": ("shim/stack/unwind.c", '#include "rules.h"\n', "by another path"),
    "a port that knows the analyzer": ("shim/arch/generic/stack.c", '#include "analyzer/util/vec.h"\n', "shim includes analyzer"),
}


def case_refuse():
    """Each rule about the sources is tried: files break it, and of each breach there is one line that names its file."""
    folder = mt.scratch("layers")
    for name in ("analyzer", "shim", "format", "scripts"):
        shutil.copytree(os.path.join(mt.TOP, name), os.path.join(folder, name))
    for path, text, _ in BREACHES.values():
        with open(os.path.join(folder, path), "a", encoding="utf-8") as file:
            file.write(text)
    done = mt.execute([folder + "/scripts/layers", folder + "/none"])
    lines = done.out.splitlines()
    for what, (path, _, said) in BREACHES.items():
        mt.check(any(path in line and said in line for line in lines), "%s: %s" % (what, done.out))
    mt.equal((done.status, len(lines)), (1, len(BREACHES)), "status and lines of " + done.out)


# Objects by room, what is said of them.
CALLS = {
    "a call upwards": ({"analyzer/util/low": "int high(void); int low(void) { return high(); }",
                        "analyzer/report/screen/high": "int high(void) { return 1; }"}, "util/low.o uses high of report/screen/high.o"),
    "a call upwards between rooms of one": ({"analyzer/report/json/low": "int high(void); int low(void) { return high(); }",
                                             "analyzer/report/page/high": "int high(void) { return 1; }"},
                                            "report/json/low.o uses high of report/page/high.o"),
    "a call of the room around it": ({"analyzer/recorder/rings/low": "int high(void); int low(void) { return high(); }",
                                      "analyzer/recorder/high": "int high(void) { return 1; }"},
                                     "recorder/rings/low.o uses high of recorder/high.o"),
    "a call of the recorder from beside": ({"analyzer/live/low": "int high(void); int low(void) { return high(); }",
                                            "analyzer/recorder/sampler/high": "int high(void) { return 1; }"},
                                           "live/low.o uses high of recorder/sampler/high.o"),
    "a screen that judges": ({"analyzer/report/screen/high": "int model_run(void); int high(void) { return model_run(); }",
                              "analyzer/model/low": "int model_run(void) { return 1; }"},
                             "judges for itself: report/screen/high.o model_run model/low.o"),
    "a circle of calls": ({"analyzer/report/screen/a": "int b(void); int a(void) { return b(); }",
                           "analyzer/report/screen/b": "int a(void); int b(void) { return a(); }"}, "call each other in a circle"),
    "a call upwards in the shim": ({"shim/base/low": "int high(void); int low(void) { return high(); }",
                                    "shim/device/high": "int high(void) { return 1; }"}, "base/low uses high of device/high"),
    "a variable of a room above in the shim": ({"shim/stack/low": "extern int high; int low(void) { return high; }",
                                                "shim/trace/high": "int high = 1;"}, "stack/low uses high of trace/high"),
    "a call upwards in a port": ({"shim/arch/generic/stack": "int high(void); int low(void) { return high(); }",
                                  "shim/python/high": "int high(void) { return 1; }"}, "stack/stack uses high of python/high"),
    "a circle of calls in the shim": ({"shim/base/a": "int b(void); int a(void) { return b(); }",
                                       "shim/base/b": "int a(void); int b(void) { return a(); }"}, "call each other in a circle"),
}
# What only looks like a call upwards or a circle.
NO_CALLS = {
    "a call downwards between rooms of one": {"analyzer/report/page/high": "int low(void); int high(void) { return low(); }",
                                              "analyzer/report/json/low": "int low(void) { return 1; }"},
    "a command that uses the recorder": {"analyzer/commands/high": "int low(void); int high(void) { return low(); }",
                                         "analyzer/recorder/fold/low": "int low(void) { return 1; }"},
    "a call of libc by a name that is hooked": {
        "shim/base/low": "void free(void *); void low(void *p) { free(p); }", "shim/host/host": "void free(void *p) { (void)p; }"},
    "one module in two languages": {"shim/host/new": "int b(void); int a(void) { return b(); }",
                                    "shim/arch/x86_64/new": "int a(void); int b(void) { return a(); }"},
    "an object whose source has gone": {"shim/base/gone.c": "int high(void); int low(void) { return high(); }",
                                        "shim/device/high": "int high(void) { return 1; }"},
}


def layers_of_objects(sources):
    folder = mt.scratch("calls")
    for name, text in sources.items():
        path = os.path.join(folder, name)
        os.makedirs(os.path.dirname(path), exist_ok=True)
        mt.equal(mt.execute([mt.need("cc"), "-xc", "-c", "-o", path + ".o", "-"], stdin=text.encode()).status, 0, "status of cc")
    return mt.execute([os.path.join(mt.TOP, "scripts/layers"), folder])


@mt.variants(*CALLS)
def case_refuse_calls(what):
    sources, said = CALLS[what]
    done = layers_of_objects(sources)
    mt.check(done.status == 1 and said in done.out, "%s: %s" % (what, done))


@mt.variants(*NO_CALLS)
def case_allow_calls(what):
    done = layers_of_objects(NO_CALLS[what])
    mt.equal((done.status, done.out), (0, ""), "scripts/layers")


mt.main()
