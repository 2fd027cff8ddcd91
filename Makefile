# memtrace
#
#   make              build/libmemtrace.so and build/memtrace
#   make demo         installs what is missing, builds, traces examples/train.py, prints the report
#   make check        installs what is missing, builds, runs every test; ends with `N passed, N failed`
#   make check-long   ... and the tests that take minutes
#   make demo-gpu     PyTorch until it runs out of device memory, on a GPU or on the stand-in, and the report
#   make check-gpu    the device tests on a real NVIDIA GPU, with the PyTorch of GPU_PYTHON
#   make bench        ratios to the same run without a tracer, under heaptrack and under memray
#   make setup-page   installs what the scripts of memtrace html are bundled from (npm)
#   make format       formats the C code as .clang-format says
#   make golden       records tests/golden anew (its changes are a commit of their own)
#   make install      PREFIX=/usr/local DESTDIR=
#   make uninstall    removes what install put there
#   make wheel        build/wheel/*.whl, which pip installs on any Linux with glibc 2.17 or later
#   make wheel-local  build/wheel/local/*.whl, of what make has built, for this machine alone
#   make deb          build/deb/memtrace_VERSION_MACHINE.deb
#   make dist         build/memtrace-VERSION.tar.gz, the source of the commit that is checked out
#   make static       build/static/memtrace and libmemtrace.so, for Linux without glibc (Alpine)
#   make musl         the same as build/musl, the program linked with musl and libraries built for it
#   make clean        removes what was built; distclean also the Python environments (gigabytes)
#   make help         this text
#
# Variables: CC, CXX, CFLAGS, LDFLAGS as usual; B = build folder, ARCH = folder of shim/arch, SAN = sanitizers (address,undefined),
# V=1 shows commands; PAGE_MODULES = npm's packages for the page; VENV, VENV_GPU, PYTHON, TORCH_INDEX for the Python environments (scripts/setup); TESTS = the tests that check runs.

B       ?= build
VENV    ?= build/venv
VENV_GPU ?= build/venv-gpu
PAGE_MODULES ?= build/page/node_modules
PREFIX  ?= /usr/local
DESTDIR ?=
CFLAGS  ?= -O2 -g
WARN     = -Wall -Wextra -Werror
CPPFLAGS += -I. -D_GNU_SOURCE
# The shim under a name that the frameworks of Ascend look for; a link wouldn't do (see shim/device/mstx.c).
POOL_SHIM = libmemtrace_libascend_kernel_hook.so
LIBS     = -ldw -lelf -ljansson -lzstd -lz -liberty -lm -lpthread

ifdef SAN
override CFLAGS  += -fsanitize=$(SAN) -fno-sanitize-recover=all -fno-omit-frame-pointer
override LDFLAGS += -fsanitize=$(SAN)
endif

# The folder of shim/arch for what the compiler makes code for. In generic, which is chosen by hand, there is neither assembly nor our
# own unwinder.
MACHINE  := $(firstword $(subst -, ,$(shell $(CC) -dumpmachine 2>/dev/null)))
ARCH     ?= $(MACHINE)
UNWINDER_FILES = $(addprefix shim/stack/,stack.c unwind.c unwind_step.c rules.c cfi.c)
SHIM     := $(wildcard shim/*/*.c shim/*/*.S shim/arch/$(ARCH)/*.c shim/arch/$(ARCH)/*.S)
ifeq ($(ARCH),generic)
SHIM     := $(filter-out %.S $(UNWINDER_FILES),$(SHIM))
override CPPFLAGS += -DMT_ARCH_GENERIC
endif
SHIM     := $(SHIM:%=$(B)/%.o)
# $(1) from the root, for who works in another folder. Not abspath, which takes a blank for the end of a name.
FULL      = $(if $(filter /%,$(1)),,"$$PWD"/)'$(1)'
ANALYZER := $(patsubst %,$(B)/%.o,$(wildcard analyzer/*/*.c analyzer/*/*/*.c format/*.c))
# One line a file; V=1 shows the commands.
SAY       = $(if $(V),,@echo '  $@' && )
COMPILE   = $(SAY)$(CC) -std=c11 $(CFLAGS) $(WARN) $(CPPFLAGS) -MMD -MP

# Goals that call make again would build what the other goals are just building, and clean remove it: then one after another.
ifneq ($(and $(word 2,$(MAKECMDGOALS)),$(filter clean distclean demo demo-gpu check check-long check-asan bench asan run-tests setup-%,$(MAKECMDGOALS))),)
.NOTPARALLEL:
endif

all: $(B)/libmemtrace.so $(B)/$(POOL_SHIM) $(B)/memtrace

help:
	@sed -n '3,/^$$/s/^# \{0,1\}//p' $(firstword $(MAKEFILE_LIST))

# ---- the two products ----

# Initial-exec TLS because the general model may allocate on first use, inside malloc. -fno-builtin because gcc
# turns malloc + memset in our calloc into calloc. nodelete: hooks may be running when somebody calls dlclose.
SHIM_FLAGS = -fPIC -fvisibility=hidden -ftls-model=initial-exec -fno-builtin

# What both sides share as code rather than structs is compiled twice.
SHIM_SHARED = $(patsubst %,$(B)/shim/format/%.c.o,number output_name settings text)

$(B)/libmemtrace.so: $(SHIM) $(SHIM_SHARED) shim/hooks/exports.map
	$(SAY)$(CC) -shared -Wl,--build-id=sha1 -Wl,-z,now -Wl,-z,nodelete -Wl,-z,defs -Wl,--version-script=shim/hooks/exports.map -o $@ $(filter %.o,$^) $(LDFLAGS)
$(B)/$(POOL_SHIM): $(B)/libmemtrace.so
	$(SAY)cp $< $@
# The program's getenv may be its own: shim/base/environ.h.
$(SHIM_SHARED): CPPFLAGS += -Dgetenv=mt_environ_get
$(SHIM): $(B)/%.o: % | $(B)/.compiler
	@mkdir -p $(@D)
	$(COMPILE) $(SHIM_FLAGS) -c -o $@ $<
$(SHIM_SHARED): $(B)/shim/%.o: % | $(B)/.compiler
	@mkdir -p $(@D)
	$(COMPILE) $(SHIM_FLAGS) -c -o $@ $<

# At fixed addresses, as what it keeps of an analysis has pointers to its constants: analyzer/util/memory/memory.h.
$(B)/memtrace: $(ANALYZER)
	$(SAY)$(CC) -no-pie -Wl,--build-id=sha1 -o $@ $^ $(LDFLAGS) $(LIBS)

# A program that needs nothing of the system, and the library beside it: for Linux without glibc (Alpine), whose loader takes the library as
# it is. What is opened at run time can't be: NVIDIA's NVML, debuginfod.
static: $(B)/static/memtrace $(B)/static/libmemtrace.so
$(B)/static/memtrace: $(ANALYZER)
	@mkdir -p $(@D)
	$(SAY)$(CC) -static -Wl,--build-id=sha1 -o $@ $^ $(LDFLAGS) $(LIBS) -llzma -lbz2
$(B)/static/libmemtrace.so: $(B)/libmemtrace.so
	@mkdir -p $(@D)
	$(SAY)cp $< $@

# The program with musl for glibc, too: smaller, and of one C library with the programs there. scripts/musl-libraries builds what it is linked with.
MUSL_CC = musl-gcc -isystem build/musl/root/include -idirafter /usr/include -idirafter /usr/include/$(shell $(CC) -print-multiarch 2>/dev/null)
musl: $(B)/libmemtrace.so
	@[ -e build/musl/root/.complete ] || { echo 'memtrace: make setup-musl builds the libraries' >&2; exit 1; }
	@$(MAKE) --no-print-directory B=$(B)/musl CC='$(MUSL_CC)' CFLAGS='-O2 -g0' LDFLAGS='-static -Wl,-s' \
		LIBS='$(foreach lib,dw elf jansson zstd z iberty,build/musl/root/lib/lib$(lib).a)' $(B)/musl/memtrace
	@cp $(B)/libmemtrace.so $(B)/musl/
setup-musl: ; $(SETUP) musl

# What no header declares is static. Each object allocates by these names: memory that one got elsewhere would be missing in an index.
$(ANALYZER): WARN += -Wmissing-prototypes
$(ANALYZER): analyzer/util/memory/names.h
$(ANALYZER): $(B)/%.o: % | $(B)/.deps
	@mkdir -p $(@D)
	$(COMPILE) -include analyzer/util/memory/names.h -c -o $@ $<

# The page's scripts are in the program. They are bundled from npm's packages, without which everything else is built all the same.
PAGE = $(B)/page/page.js $(B)/page/page.css
$(B)/analyzer/report/page/page_bundle.c.o: CPPFLAGS += -DMT_PAGE_BUNDLE='"$(B)/page"'
$(B)/analyzer/report/page/page_bundle.c.o: $(PAGE)
$(PAGE) &: $(wildcard page/*.js page/src/*) page/package-lock.json scripts/page-bundle $(wildcard $(PAGE_MODULES)/.package-lock.json)
	@echo '  $(B)/page'
	@scripts/page-bundle '$(PAGE_MODULES)' '$(B)/page'

# Names the packages of a missing compiler or header before the build stumbles over it.
$(B)/.deps: scripts/deps | $(B)/.compiler
	@CC='$(CC)' scripts/deps
	@touch $@
$(B)/.compiler: scripts/deps
	@CC='$(CC)' scripts/deps --shim
	@[ -d shim/arch/$(ARCH) ] || { echo 'memtrace is not ported to $(ARCH) yet; ARCH=generic builds a port with known faults, see docs/PORTING.md' >&2; exit 1; }
	@mkdir -p $(@D) && touch $@

# ---- wheels ----

# A wheel for each machine, for every Python. The compiler links against glibc 2.17, and what the program needs else is linked into it:
# scripts/wheel-libraries says from where. The C code in a wheel has no paths in it, so that it is the same wherever it is built.
WHEEL_MACHINES = x86_64 aarch64
WHEELS    = $(B)/wheel
ZIG       = $(firstword $(wildcard build/venv-wheel/lib/python3*/site-packages/ziglang/zig))
wheel: setup-wheel
	@$(MAKE) --no-print-directory $(WHEEL_MACHINES:%=wheel-%)
setup-wheel: ; $(SETUP) wheel page
wheel-%: manual
	@[ -n '$(ZIG)' ] && [ -e build/wheel/$*/root/.complete ] || { echo 'memtrace: make setup-wheel brings the compiler and the libraries' >&2; exit 1; }
	@ZIG_GLOBAL_CACHE_DIR='$(WHEELS)/cache' ZIG_LOCAL_CACHE_DIR='$(WHEELS)/cache' \
		$(MAKE) --no-print-directory B=$(WHEELS)/$* CFLAGS='-O2 -g0' LDFLAGS=-Wl,-s ARCH=$* \
		CC='$(ZIG) cc -target $*-linux-gnu.2.17 -isystem build/wheel/$*/root/usr/include' WARN='$(WARN) -Wno-unterminated-string-initialization' \
		LIBS='$(foreach lib,dw elf jansson zstd z lzma bz2 iberty,build/wheel/$*/root/usr/lib/$*-linux-gnu/lib$(lib).a) -lm -lpthread -ldl' \
		$(WHEELS)/$*/memtrace $(WHEELS)/$*/libmemtrace.so
	@scripts/wheel --machine $* --built $(WHEELS)/$* --share $(B)/share --libraries build/wheel/$*/root --out $(WHEELS)

# The same for this machine alone, of what is built anyway: make check installs it.
wheel-local: all manual
	@scripts/wheel --machine $(MACHINE) --built '$(B)' --share '$(B)/share' --out '$(B)/wheel/local'

# ---- tests ----

# tests/unit/test_*.c   a program each, with everything of the analyzer but main
# tests/unit/tsan_*.c   a program each under ThreadSanitizer; includes the shim's file that it tests, since a shim
#                       that is linked in would replace malloc; of the reader TSAN_WITH is built along
# tests/programs/*.c    run under the shim by tests/cases; lib*.c are shared objects, *.cc are C++
UNITS    := $(patsubst %.c,$(B)/%,$(wildcard tests/unit/test_*.c))
TSAN     := $(patsubst %.c,$(B)/%,$(wildcard tests/unit/tsan_*.c))
PLUGINS  := $(patsubst %.c,$(B)/%.so,$(wildcard tests/programs/lib*.c))
PROGRAMS := $(patsubst %.c,$(B)/%,$(filter-out tests/programs/lib%,$(wildcard tests/programs/*.c tests/golden/*.c)))
CPP_PROGRAMS := $(patsubst %.cc,$(B)/%,$(filter-out tests/programs/lib%,$(wildcard tests/programs/*.cc)))
CPP_PLUGINS := $(patsubst %.cc,$(B)/%.so,$(wildcard tests/programs/lib*.cc))
# devices.c and requests.c are built by devices.py and replay.py, against other libraries.
BENCHES  := $(filter-out tests/bench/devices.c tests/bench/requests.c,$(wildcard tests/bench/*.c))
BENCHES  := $(BENCHES:%.c=$(B)/%) $(BENCHES:%.c=$(B)/%.so)
TESTS    ?=

$(B)/libanalyzer.a: $(filter-out $(B)/analyzer/commands/main.c.o,$(ANALYZER))
	@rm -f $@
	$(SAY)$(AR) rcs $@ $^
$(UNITS): $(B)/%: %.c $(B)/libanalyzer.a
	@mkdir -p $(@D)
	$(COMPILE) -MF $@.d -o $@ $< $(B)/libanalyzer.a $(LDFLAGS) $(LIBS)
# Its range of addresses is a program's at fixed ones.
$(B)/tests/unit/test_memory: LDFLAGS += -no-pie
TSAN_READER := $(wildcard $(addsuffix *.c,analyzer/reader/ analyzer/reader/*/ analyzer/util/ analyzer/util/*/ format/))
$(B)/tests/unit/tsan_ahead: TSAN_WITH = $(TSAN_READER) -lzstd -lz -lm
$(B)/tests/unit/tsan_ahead: $(TSAN_READER)
TSAN_YOUNG := $(addprefix analyzer/util/,young_file.c late_slots.c vec.c)
$(B)/tests/unit/tsan_young: TSAN_WITH = $(TSAN_YOUNG)
$(B)/tests/unit/tsan_young: $(TSAN_YOUNG)
$(TSAN): $(B)/%: %.c
	@mkdir -p $(@D)
	$(COMPILE) -MF $@.d -fsanitize=thread -o $@ $< $(TSAN_WITH) $(LDFLAGS) -lpthread
# Unoptimised calls stay calls: what the tests expect of a stack must be in the program.
$(B)/tests/programs/compressor: PROGRAM_LIBS = -lzstd
$(PROGRAMS): $(B)/%: %.c
	@mkdir -p $(@D)
	$(SAY)$(CC) -std=c11 -O1 -g -fno-optimize-sibling-calls -fno-builtin $(WARN) $(CPPFLAGS) -MMD -MP -MF $@.d -o $@ $< -rdynamic -ldl -lm -lpthread $(PROGRAM_LIBS)
$(CPP_PROGRAMS): $(B)/%: %.cc
	@mkdir -p $(@D)
	$(SAY)$(CXX) -std=c++17 -O1 -g $(WARN) $(CPPFLAGS) -MMD -MP -MF $@.d -o $@ $< -rdynamic -ldl -lpthread
$(CPP_PLUGINS): $(B)/%.so: %.cc
	@mkdir -p $(@D)
	$(SAY)$(CXX) -std=c++17 -O1 -g -fPIC -shared $(WARN) $(CPPFLAGS) -MMD -MP -MF $@.d -o $@ $<
$(PLUGINS): $(B)/%.so: %.c
	@mkdir -p $(@D)
	$(SAY)$(CC) -std=c11 -O1 -g -fPIC -shared -fno-builtin $(WARN) $(CPPFLAGS) -MMD -MP -MF $@.d -o $@ $<
BENCH_FLAGS_C = -std=c11 -O2 -g -fno-omit-frame-pointer $(WARN) $(CPPFLAGS) -MMD -MP -MF $@.d
$(filter-out %.so,$(BENCHES)): $(B)/%: %.c
	@mkdir -p $(@D)
	$(SAY)$(CC) $(BENCH_FLAGS_C) -o $@ $< -lpthread
$(filter %.so,$(BENCHES)): $(B)/%.so: %.c
	@mkdir -p $(@D)
	$(SAY)$(CC) $(BENCH_FLAGS_C) -fPIC -shared -o $@ $< -lpthread

include tests/unwind/rules.mk
include tests/standin/cuda/rules.mk
include tests/standin/ascend/rules.mk

tests: programs $(UNITS)
programs: all $(TSAN) $(PROGRAMS) $(CPP_PROGRAMS) $(PLUGINS) $(CPP_PLUGINS) $(UNWIND_TESTS) standin $(ASCEND_TESTS)
# The analyzer and its unit tests once more, where a wild read ends the program.
asan:
	@$(MAKE) --no-print-directory B=$(B)/asan SAN=address,undefined CFLAGS='-O1 -g' asan-tests
asan-tests: $(B)/memtrace $(UNITS)

RUN = B=$(call FULL,$(B)) VENV=$(call FULL,$(VENV)) VENV_GPU=$(call FULL,$(VENV_GPU)) CC='$(CC)' tests/run
# Unit tests: in check only the sanitized ones.
check:      setup-check; @$(MAKE) --no-print-directory run-tests
check-long: setup-long; @$(MAKE) --no-print-directory tests && $(MAKE) --no-print-directory run-tests TEST_FLAGS=--long WHEELS_TESTED='$(WHEEL_MACHINES)'
# Building a wheel takes a minute, and its compiler has 90 MB, so check has none; make wheel-local has the layout of this machine's.
run-tests: programs asan manual $(if $(and $(ZIG),$(wildcard build/wheel/*/root/.complete)),$(WHEELS_TESTED:%=wheel-%))
	@$(RUN) $(TEST_FLAGS) $(TESTS)

check-asan: asan;    @$(RUN) asan
check-tsan: $(TSAN); @$(RUN) tsan_

golden: tests
	tests/cases/golden.py --refresh

CLANG_FORMAT ?= $(VENV)/bin/clang-format
FORMATTED = memtrace.h $(wildcard $(addsuffix /*.[ch],analyzer/* analyzer/*/* shim/* shim/arch/* format tests/unit))
format: ; @$(CLANG_FORMAT) -i $(FORMATTED)
# Only text of screens may be longer than 120 columns.
check-format:
	@$(CLANG_FORMAT) --dry-run -Werror $(FORMATTED)
	@expand $(FORMATTED) | grep -E '^.{121,}' | grep -v '"' && echo 'lines above 120 columns' && exit 1 || true

# ---- use ----

SETUP = @VENV='$(VENV)' VENV_GPU='$(VENV_GPU)' PAGE_MODULES='$(PAGE_MODULES)' scripts/setup build
setup-page:  ; $(SETUP) page
setup-demo:  ; $(SETUP) demo page
setup-check: ; $(SETUP) demo check page gpu $(if $(CI),ci)
setup-long:  ; $(SETUP) demo check page gpu wheel musl long $(if $(CI),ci)
setup-gpu:   ; $(SETUP) gpu
setup-bench: ; $(SETUP) demo page bench

demo: setup-demo
	@$(MAKE) --no-print-directory all
	scripts/demo '$(B)' '$(VENV)'

demo-gpu: setup-gpu
	@$(MAKE) --no-print-directory all standin
	scripts/demo-gpu '$(B)' '$(VENV_GPU)'

# On a machine with a real GPU: GPU_PYTHON has PyTorch with CUDA. GPU_FLAGS=--standin tries the test itself without one.
GPU_PYTHON ?= python3
check-gpu: all standin
	@B=$(call FULL,$(B)) VENV_GPU=$(call FULL,$(VENV_GPU)) tests/gpu/check.py --python '$(GPU_PYTHON)' $(GPU_FLAGS)

bench: setup-bench
	@$(MAKE) --no-print-directory all $(BENCHES) $(PROGRAMS)
	@$(MAKE) --no-print-directory B=$(B)/without-holders CFLAGS='$(CFLAGS) -DMT_WITHOUT_HOLDERS' $(B)/without-holders/libmemtrace.so
	@B='$(B)' VENV='$(VENV)' tests/bench/run $(BENCH_FLAGS)

# Where an installed file goes to and what it comes from. LIBDIR=lib/TRIPLET is Debian's way: the program and the library find each
# other there as well.
LIBDIR    ?= lib
INSTALLED = bin/memtrace:$(B)/memtrace $(LIBDIR)/libmemtrace.so:$(B)/libmemtrace.so $(LIBDIR)/$(POOL_SHIM):$(B)/libmemtrace.so \
            include/memtrace.h:memtrace.h share/memtrace/memtrace.py:scripts/memtrace.py
# The parts of the Python package that memtrace fleet becomes, and memtrace push starts.
INSTALLED += $(foreach file,$(wildcard $(addprefix python/libmemtrace/,__init__.py marks.py trace.py push.py py.typed fleet/*.*)), \
             share/memtrace/$(file):$(file))
# Man pages and completions, which the program writes itself. RUN_BUILT runs a program of another machine.
COMMANDS  = $(shell sed -n '/""/!s/^COMMAND.\([a-z]*\),.*/\1/p' analyzer/commands/commands.def)
MANUAL    = share/man/man1/memtrace.1 $(COMMANDS:%=share/man/man1/memtrace-%.1)
SHELLS    = share/bash-completion/completions/memtrace share/zsh/site-functions/_memtrace share/fish/vendor_completions.d/memtrace.fish
INSTALLED += $(foreach file,$(MANUAL) $(SHELLS),$(file):$(B)/$(file))
RUN_BUILT ?=
TO        = $(DESTDIR)$(PREFIX)
# LD_PRELOAD finds a library by its name alone only after ldconfig, which can't be had for another root or without its rights.
LDCONFIG  = PATH=$$PATH:/sbin:/usr/sbin; ldconfig 2>/dev/null; ldconfig -p | grep -q '=> $(PREFIX)/lib/libmemtrace.so$$' || \
            echo "memtrace: the loader does not look there; the full path works: LD_PRELOAD=$(PREFIX)/lib/libmemtrace.so"

manual: $(MANUAL:%=$(B)/%) $(SHELLS:%=$(B)/%)
WRITE     = @mkdir -p $(@D) && $(RUN_BUILT) $(B)/memtrace help
$(B)/share/man/man1/memtrace.1: $(B)/memtrace
	$(WRITE) --man >$@
$(B)/share/man/man1/memtrace-%.1: $(B)/memtrace
	$(WRITE) --man $* >$@
$(B)/share/bash-completion/completions/memtrace: $(B)/memtrace
	$(WRITE) --completion bash >$@
$(B)/share/zsh/site-functions/_memtrace: $(B)/memtrace
	$(WRITE) --completion zsh >$@
$(B)/share/fish/vendor_completions.d/memtrace.fish: $(B)/memtrace
	$(WRITE) --completion fish >$@

install: all manual
	@for file in $(INSTALLED); do \
		case $$file in include/* | share/*) mode=644 ;; *) mode=755 ;; esac; \
		install -D -m $$mode "$${file#*:}" "$(TO)/$${file%%:*}" && echo "  $(TO)/$${file%%:*}" || exit 1; done
	$(if $(DESTDIR),,@$(LDCONFIG))
uninstall:
	@for file in $(INSTALLED); do rm -fv "$(TO)/$${file%%:*}" || exit 1; done
	@rm -rf "$(TO)/share/memtrace/python"
	@rmdir "$(TO)/share/memtrace" 2>/dev/null || true
	$(if $(DESTDIR),,@PATH=$$PATH:/sbin:/usr/sbin; ldconfig 2>/dev/null || true)

# What is committed, so that it is the same archive for everybody who makes it of that commit.
VERSION   = $(shell scripts/version)
dist:
	@mkdir -p '$(B)'
	$(SAY)git archive --prefix='memtrace-$(VERSION)/' HEAD | gzip -9n >'$(B)/memtrace-$(VERSION).tar.gz'
	@echo '  $(B)/memtrace-$(VERSION).tar.gz'

# A package of the commit that is checked out, for the Debian that it is built on. packaging/debian says what is in it; its changelog is
# the version's.
deb: setup-deb
	@rm -rf '$(B)/deb' && mkdir -p '$(B)/deb'
	$(SAY)git archive --prefix='memtrace-$(VERSION)/' HEAD | tar -x -C '$(B)/deb'
	@cp -r packaging/debian '$(B)/deb/memtrace-$(VERSION)/debian'
	@scripts/debian-changelog >'$(B)/deb/memtrace-$(VERSION)/debian/changelog'
	$(SAY)modules=$(call FULL,$(PAGE_MODULES)) && cd '$(B)/deb/memtrace-$(VERSION)' && \
		env -u MAKEFLAGS -u MAKELEVEL -u B PAGE_MODULES="$$modules" dpkg-buildpackage -b -us -uc >../log 2>&1 || { tail -20 ../log >&2; exit 1; }
	@ls '$(B)'/deb/memtrace_*.deb | sed 's/^/  /'
setup-deb: ; $(SETUP) deb page

clean:
	@[ ! -d '$(B)' ] || find '$(B)' -mindepth 1 -maxdepth 1 ! -name 'venv*' ! -name page -exec rm -rf {} +
distclean:
	rm -rf '$(B)'

# The compiler writes them, beside what they are for.
%.d: ;
-include $(SHIM:.o=.d) $(SHIM_SHARED:.o=.d) $(ANALYZER:.o=.d) $(addsuffix .d,$(UNITS) $(TSAN) $(PROGRAMS) $(CPP_PROGRAMS) $(PLUGINS) $(CPP_PLUGINS) $(BENCHES))
.PHONY: all help tests programs asan asan-tests check check-long check-asan check-tsan run-tests golden format check-format setup-page setup-demo setup-check setup-long setup-gpu \
	setup-bench demo demo-gpu check-gpu bench manual static musl setup-musl wheel wheel-local setup-wheel install uninstall dist deb setup-deb clean distclean
.DELETE_ON_ERROR:
