# memtrace: `make` builds, `make demo` shows it, `make check` tests it.
CFLAGS   ?= -O2 -g
WARN      = -Wall -Wextra -Werror
CPPFLAGS += -I. -D_GNU_SOURCE
B         = build
VENV     ?= $(B)/venv

SHIM     := $(wildcard shim/*.c shim/*.S)
ANALYZER := $(wildcard analyzer/*.c format/*.c)
LIBS      = -ldw -lelf -ljansson -lzstd -lz -liberty -lm -lpthread

all: $(B)/libmemtrace.so $(B)/memtrace

# Initial-exec TLS because the general model may allocate on first use, inside malloc.
$(B)/libmemtrace.so: $(SHIM:%=$(B)/%.o)
	$(CC) -shared -Wl,-z,now -Wl,-z,nodelete -o $@ $^ $(LDFLAGS)
$(B)/shim/%.o: shim/%
	@mkdir -p $(@D)
	$(CC) -std=c11 $(CFLAGS) $(WARN) $(CPPFLAGS) -fPIC -fvisibility=hidden -ftls-model=initial-exec -fno-builtin -MMD -c -o $@ $<

$(B)/memtrace: $(ANALYZER:%=$(B)/%.o)
	$(CC) -o $@ $^ $(LDFLAGS) $(LIBS)
$(B)/analyzer/%.o $(B)/format/%.o: CPPFLAGS += -I.
$(B)/%.c.o: %.c
	@mkdir -p $(@D)
	$(CC) -std=c11 $(CFLAGS) $(WARN) $(CPPFLAGS) -MMD -c -o $@ $<

-include $(shell find $(B) -name '*.d' 2>/dev/null)
.PHONY: all
