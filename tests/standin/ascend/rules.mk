# The Ascend stand-in in three shapes, each in a folder like CANN's own:
#   flat      libascendcl.so has everything in it
#   old       libascendcl.so calls libruntime.so, which calls libascend_hal.so: every layer can be hooked
#   layered   libascendcl.so needs libacl_rt.so, which forwards to twins in libruntime.so
ASCEND      = $(B)/standin/ascend
ASCEND_LIB  = $(foreach how,flat old layered,$(ASCEND)/$(how)/cann/lib64/$(1))
ASCEND_C    = $(SAY)$(CC) -std=c11 -O1 -g -fPIC $(WARN) $(CPPFLAGS)
ASCEND_DEPS = $(wildcard tests/standin/ascend/*) tests/standin/cuda/shared.c tests/standin/cuda/shared.h
ASCEND_S    = tests/standin/ascend
ASCEND_TESTS := $(call ASCEND_LIB,libascendcl.so) $(call ASCEND_LIB,libms_tools_ext.so)

$(ASCEND)/flat/cann/lib64/libascendcl.so: $(ASCEND_DEPS)
	@mkdir -p $(@D)
	$(ASCEND_C) -shared -o $@ -Wl,-soname,libascendcl.so $(ASCEND_S)/acl.c $(ASCEND_S)/rt.c $(ASCEND_S)/hal.c tests/standin/cuda/shared.c -lpthread
$(ASCEND)/%/cann/lib64/libascend_hal.so: $(ASCEND_DEPS)
	@mkdir -p $(@D)
	$(ASCEND_C) -shared -o $@ -Wl,-soname,libascend_hal.so $(ASCEND_S)/hal.c tests/standin/cuda/shared.c -lpthread
ASCEND_TO = -L$(@D) -Wl,-rpath,'$$ORIGIN' -Wl,--no-as-needed
$(ASCEND)/old/cann/lib64/libruntime.so: $(ASCEND)/old/cann/lib64/libascend_hal.so
	$(ASCEND_C) -shared -o $@ -Wl,-soname,libruntime.so $(ASCEND_S)/rt.c $(ASCEND_TO) -lascend_hal
$(ASCEND)/old/cann/lib64/libascendcl.so: $(ASCEND)/old/cann/lib64/libruntime.so
	$(ASCEND_C) -shared -o $@ -Wl,-soname,libascendcl.so $(ASCEND_S)/acl.c $(ASCEND_TO) -lruntime -lascend_hal
$(ASCEND)/layered/cann/lib64/libruntime.so: $(ASCEND)/layered/cann/lib64/libascend_hal.so
	$(ASCEND_C) -DIMPL -shared -o $@ -Wl,-soname,libruntime.so -Wl,-Bsymbolic $(ASCEND_S)/acl.c $(ASCEND_S)/rt.c $(ASCEND_TO) -lascend_hal
$(ASCEND)/layered/cann/lib64/libacl_rt.so: $(ASCEND)/layered/cann/lib64/libruntime.so
	$(ASCEND_C) -shared -o $@ -Wl,-soname,libacl_rt.so -Wl,-Bsymbolic $(ASCEND_S)/forward.c $(ASCEND_TO) -lruntime
$(ASCEND)/layered/cann/lib64/libascendcl.so: $(ASCEND)/layered/cann/lib64/libacl_rt.so
	$(SAY)$(CC) -shared -o $@ -Wl,-soname,libascendcl.so $(ASCEND_TO) -lacl_rt
$(ASCEND)/%/cann/lib64/libms_tools_ext.so: $(ASCEND_DEPS)
	@mkdir -p $(@D)
	$(ASCEND_C) -shared -o $@ -Wl,-soname,libms_tools_ext.so $(ASCEND_S)/mstx.c -ldl -lpthread
# What the tests run: FOLDER/client-WAY, and client-WAY-twin where there are twins.
ASCEND_CLIENTS := $(foreach way,linked handle default,$(foreach how,flat old layered,$(ASCEND)/$(how)/client-$(way)) $(ASCEND)/layered/client-$(way)-twin)
ASCEND_WAY = $(word 1,$(subst -, ,$(patsubst client-%,%,$(notdir $@))))
ASCEND_LOW_old     = -lruntime -lascend_hal
ASCEND_LOW_layered = -lruntime -lascend_hal
$(ASCEND_CLIENTS): $(ASCEND)/%: $(call ASCEND_LIB,libascendcl.so) tests/standin/ascend/client.c
	$(SAY)$(CC) -std=c11 -O1 -g -fno-optimize-sibling-calls -fno-builtin $(WARN) $(CPPFLAGS) -D$(shell echo $(ASCEND_WAY) | tr a-z A-Z) $(if $(findstring twin,$@),-DTWIN) \
		-o $@ tests/standin/ascend/client.c -L$(@D)/cann/lib64 -Wl,-rpath,'$$ORIGIN/cann/lib64' \
		$(if $(findstring linked,$@),-lascendcl $(if $(findstring layered,$@),-lacl_rt) $(ASCEND_LOW_$(notdir $(@D)))) -ldl -lpthread
ASCEND_TESTS += $(ASCEND_CLIENTS)
# Pools and phases told through mstx, with and without a profiler that wants to hear of them too.
ASCEND_TESTS += $(ASCEND)/flat/pools $(ASCEND)/flat/pools-profiled
$(ASCEND)/flat/cann/lib64/libprofapi.so: tests/standin/ascend/profapi.c
	@mkdir -p $(@D)
	$(ASCEND_C) -shared -o $@ -Wl,-soname,libprofapi.so $<
ASCEND_POOLS = $(SAY)$(CC) -std=c11 -O1 -g -fno-builtin $(WARN) $(CPPFLAGS) -o $@ $< -L$(@D)/cann/lib64 -Wl,-rpath,'$$ORIGIN/cann/lib64' \
	-Wl,--no-as-needed -lascendcl -lms_tools_ext
$(ASCEND)/flat/pools: tests/standin/ascend/pools.c $(call ASCEND_LIB,libascendcl.so) $(call ASCEND_LIB,libms_tools_ext.so)
	$(ASCEND_POOLS)
ASCEND_TESTS += $(ASCEND)/flat/week
$(ASCEND)/flat/week: tests/standin/ascend/week.c tests/programs/pacing.h $(call ASCEND_LIB,libascendcl.so) $(call ASCEND_LIB,libms_tools_ext.so)
	$(ASCEND_POOLS)
$(ASCEND)/flat/pools-profiled: tests/standin/ascend/pools.c $(call ASCEND_LIB,libascendcl.so) $(call ASCEND_LIB,libms_tools_ext.so) \
		$(ASCEND)/flat/cann/lib64/libprofapi.so
	$(ASCEND_POOLS) -lprofapi
