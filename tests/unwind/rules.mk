# The unwinder's own tests: a preload that compares its stacks with libunwind's, and programs with hard stacks, each
# built in ways that give the same source different frames.
UNWINDER     := $(patsubst %,$(B)/shim/%.c.o,$(addprefix stack/,unwind unwind_step rules range ehframe cfi) base/elfsearch base/elfsym base/libc)
UNWIND_HEADS := $(wildcard shim/*/*.h shim/arch/*/*.h tests/unwind/*.h tests/unit/test.h) tests/unwind/rules.mk
UNWIND_HOW   := O0 O2 Os O3fp
UNWIND_FLAGS_O0   = -O0
UNWIND_FLAGS_O2   = -O2
UNWIND_FLAGS_Os   = -Os -fomit-frame-pointer
UNWIND_FLAGS_O3fp = -O3 -fno-omit-frame-pointer
# Where boost is.
FIBERS := $(if $(wildcard /usr/include/boost/context/fiber.hpp),$(B)/tests/unwind/fibers)
UNWIND_TESTS := $(B)/libmemtrace-verify.so $(B)/tests/unwind/libverify.so $(B)/tests/unwind/small $(B)/tests/unwind/libplugin0.so \
                $(B)/tests/unwind/libplugin1.so $(B)/tests/unwind/liblazy.so $(B)/tests/unwind/exceptions $(FIBERS) \
                $(foreach how,$(UNWIND_HOW),$(B)/tests/unwind/traps-$(how) $(B)/tests/unwind/random-$(how))

$(B)/tests/unwind/libverify.so: tests/unwind/verify.c tests/unwind/tree.c $(UNWINDER) $(UNWIND_HEADS)
	@mkdir -p $(@D)
	$(SAY)$(CC) -std=c11 $(CFLAGS) $(WARN) $(CPPFLAGS) $(SHIM_FLAGS) -shared -o $@ $(filter %.c %.o,$^) -Wl,-z,now -lunwind
# Not installed, and nothing of the shim in it: libmemtrace.so loads it with MEMTRACE_VERIFY=1.
$(B)/libmemtrace-verify.so: tests/unwind/oracle.c shim/stack/verify.h tests/unwind/compare.h
	$(SAY)$(CC) -std=c11 $(CFLAGS) $(WARN) $(CPPFLAGS) -fPIC -ftls-model=global-dynamic -shared -o $@ $< -lunwind
# From sources: in an object made for a library, the program would be the shim's own code, whose frames don't show.
$(B)/tests/unwind/small: tests/unwind/small.c tests/unwind/tree.c $(UNWINDER:$(B)/%.o=%) $(UNWIND_HEADS)
	@mkdir -p $(@D)
	$(SAY)$(CC) -std=c11 $(CFLAGS) $(WARN) $(CPPFLAGS) -fPIE -pie -fno-builtin -o $@ $(filter %.c,$^) -ldl -lpthread
# -w: what the programs do is odd on purpose. Lazy binding, so that stacks go through the PLT.
$(B)/tests/unwind/traps-%: tests/unwind/traps.c
	@mkdir -p $(@D)
	$(SAY)$(CC) -std=gnu11 $(UNWIND_FLAGS_$*) -g -w -fno-builtin $(CPPFLAGS) -o $@ $< -rdynamic -ldl -lpthread -Wl,-z,lazy
$(B)/tests/unwind/random-%: $(B)/tests/unwind/random.c
	$(SAY)$(CC) -std=gnu11 $(UNWIND_FLAGS_$*) -g -w -fno-builtin $(CPPFLAGS) -o $@ $< -ldl
$(B)/tests/unwind/random.c: tests/unwind/random_program.py
	@mkdir -p $(@D)
	$< 7 300 > $@
$(B)/tests/unwind/exceptions: tests/unwind/exceptions.cc
	@mkdir -p $(@D)
	$(SAY)$(CXX) -std=c++17 -O2 -g $(WARN) -o $@ $<
$(B)/tests/unwind/libplugin0.so $(B)/tests/unwind/libplugin1.so: tests/unwind/plugin.c
	@mkdir -p $(@D)
	$(SAY)$(CC) -std=c11 -O1 -g -fPIC -shared $(if $(findstring 0,$(notdir $@)),-DROOM=80,-DROOM=112) -o $@ $<
$(B)/tests/unwind/liblazy.so: tests/unwind/lazy.c
	@mkdir -p $(@D)
	$(SAY)$(CC) -std=gnu11 -O2 -g -w -fPIC -shared -o $@ $< -Wl,-z,lazy
$(B)/tests/unwind/fibers: tests/unwind/fibers.cc
	@mkdir -p $(@D)
	$(SAY)$(CXX) -std=c++17 -O2 -g $(WARN) -o $@ $< -lboost_context
