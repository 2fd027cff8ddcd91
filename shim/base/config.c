#include <elf.h>
#include <poll.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/auxv.h>
#include <time.h>

#include "format/format.h"
#include "format/output_name.h"
#include "format/own_program.h"
#include "format/settings.h"
#include "format/text.h"
#include "shim/base/config.h"
#include "shim/base/environ.h"
#include "shim/base/libc.h"
#include "shim/base/quiet.h"
#include "shim/base/state.h"
#include "shim/base/sys.h"

struct mt_config mt_config;

/* Never waits for whoever reads it, and never raises a signal for who has gone or a file that may not grow. */
static void print(const char *line, size_t bytes)
{
	struct pollfd out = { .fd = 2, .events = POLLOUT };
	struct timespec none = { 0, 0 };
	uint64_t signals, raised = 1ull << (SIGPIPE - 1) | 1ull << (SIGXFSZ - 1), before = 0;

	if (mt_sys_quiet() == MT_QUIET_USUAL) { /* what was asked for (MEMTRACE_VERBOSE), with what may be called */
		MT_SYS3(SYS_write, 2, line, bytes);
		return;
	}
	if (mt_process_sandboxed() || MT_SYS4(SYS_ppoll, &out, 1, &none, NULL) != 1 || out.revents != POLLOUT)
		return;
	mt_sys_block_signals(&signals);
	MT_SYS2(SYS_rt_sigpending, &before, sizeof(before));
	if (mt_sys_failed(MT_SYS3(SYS_write, 2, line, bytes)) && (raised &= ~before) != 0)
		MT_SYS4(SYS_rt_sigtimedwait, &raised, NULL, &none, sizeof(raised));
	mt_sys_restore_signals(&signals);
}

void mt_tell(const char *const *parts)
{
	char line[1024], *at = line, *end = line + sizeof(line) - 1;

	for (at = mt_put(at, end, "memtrace: "); *parts; parts++)
		at = mt_text_clean(at, end, *parts);
	*at++ = '\n';
	print(line, (size_t)(at - line));
}

void mt_say(const char *what, const char *detail)
{
	if (mt_config.verbose)
		mt_tell((const char *[]){ what, detail, NULL });
}

#define ALIGN4(n) (((size_t)(n) + 3) & ~(size_t)3)

static int has_own_note(const char *at, size_t bytes)
{
	while (bytes >= sizeof(Elf64_Nhdr)) {
		const Elf64_Nhdr *note = (const Elf64_Nhdr *)at;
		size_t whole = sizeof(*note) + ALIGN4(note->n_namesz) + ALIGN4(note->n_descsz);
		if (note->n_type == MT_OWN_NOTE_TYPE && note->n_namesz == sizeof(MT_OWN_NOTE_NAME) && whole <= bytes &&
		    !memcmp(note + 1, MT_OWN_NOTE_NAME, sizeof(MT_OWN_NOTE_NAME)))
			return 1;
		if (whole >= bytes)
			break;
		at += whole;
		bytes -= whole;
	}
	return 0;
}

/* The memtrace program's figures are nobody's, and it would be the newest trace when it looks for that. Its notes are
 * in memory already. Without PT_PHDR (a loader that was called by its name) it is not known where, and it is another
 * program. */
static int is_own_program(void)
{
	const Elf64_Phdr *ph = (const Elf64_Phdr *)mt_libc()->getauxval(AT_PHDR);
	size_t n = ph ? mt_libc()->getauxval(AT_PHNUM) : 0;
	uintptr_t bias = 0;
	bool placed = false;

	for (size_t i = 0; i < n; i++)
		if (ph[i].p_type == PT_PHDR) {
			bias = (uintptr_t)ph - ph[i].p_vaddr;
			placed = true;
		}
	for (size_t i = 0; placed && i < n; i++)
		if (ph[i].p_type == PT_NOTE && ph[i].p_align <= 4 &&
		    has_own_note((const char *)(bias + ph[i].p_vaddr), ph[i].p_memsz))
			return 1;
	return 0;
}

/* AT_EXECFN is what was passed to execve: for a `#!` script the script, while argv[0] is its interpreter. */
static void find_program(void)
{
	const char *path = (const char *)mt_libc()->getauxval(AT_EXECFN);

	mt_put(mt_config.program, mt_config.program + sizeof(mt_config.program), path ? mt_base_name(path) : "program");
}

/* Where it fails only the last star can take more: what was matched before it needs no second look. */
static int glob_matches(const char *glob, size_t n, const char *s)
{
	const char *end = glob + n, *star = NULL, *rest = s;

	while (*s) {
		if (glob < end && *glob == '*') {
			star = ++glob;
			rest = s;
		} else if (glob < end && (*glob == '?' || *glob == *s)) {
			glob++;
			s++;
		} else if (star) {
			glob = star;
			s = ++rest;
		} else {
			return 0;
		}
	}
	while (glob < end && *glob == '*')
		glob++;
	return glob == end;
}

/* `globs`: separated by commas, colons or blanks. */
static int excluded(const char *globs)
{
	while (globs && *globs) {
		size_t n = strcspn(globs, ",: ");
		if (n && glob_matches(globs, n, mt_config.program))
			return 1;
		globs += n + (globs[n] != 0);
	}
	return 0;
}

/* What can't be read has its default; mt_config_complain() says so. */
static uint64_t number_of(enum mt_setting which)
{
	uint64_t value;

	_Static_assert(MT_SETTINGS <= 64, "a bit of `unreadable` each");
	if (mt_setting_read(which, mt_environ_get(mt_settings[which].name), &value))
		mt_config.unreadable |= 1ull << which;
	return value;
}

static const char *text_of(enum mt_setting which)
{
	const char *value = mt_environ_get(mt_settings[which].name);

	return value && *value ? value : mt_settings[which].otherwise;
}

void mt_config_complain(void)
{
	for (int i = 0; i < MT_SETTINGS; i++) {
		const struct mt_setting_row *row = &mt_settings[i];
		const char *value = mt_config.unreadable >> i & 1 ? mt_environ_get(row->name) : NULL;
		if (value)
			mt_tell((const char *[]){ row->name, ": '", value, "' ", row->wrong, "; it is ", row->otherwise,
						  " now", NULL });
	}
}

void mt_config_read(void)
{
	struct mt_config *c = &mt_config;
	const char *ring_dir = text_of(MT_SET_RING_DIR), *output = text_of(MT_SET_OUTPUT);
	char *end = c->ring_dir + sizeof(c->ring_dir);

	find_program();
	c->unreadable = 0;
	c->verbose = number_of(MT_SET_VERBOSE) != 0;
	c->off = mt_libc()->getauxval(AT_SECURE) != 0 || is_own_program() || excluded(text_of(MT_SET_EXCLUDE));
	c->children = number_of(MT_SET_CHILDREN) != 0;
	c->paused = number_of(MT_SET_PAUSED) != 0;
	c->python_allocators = number_of(MT_SET_PYTHON_ALLOCATORS) != 0;
	c->python = number_of(MT_SET_PYTHON) != 0;
	c->stacks = (uint32_t)number_of(MT_SET_STACKS);
	c->record = (uint32_t)number_of(MT_SET_RECORD);
	if (c->record == MT_RECORD_SAMPLED && c->stacks == MT_STACKS_SAMPLE)
		c->stacks = MT_STACKS_ALL; /* of each block that has an event */
	c->sample_bytes = number_of(MT_SET_SAMPLE);
	c->sample_seed = number_of(MT_SET_SAMPLE_SEED);
	c->depth = (uint32_t)number_of(MT_SET_DEPTH);
	c->limit_bytes = number_of(MT_SET_LIMIT);
	c->keep_free_bytes = number_of(MT_SET_KEEP_FREE);
	c->holders = number_of(MT_SET_HOLDERS) != 0 && c->record != MT_RECORD_SAMPLED; /* it needs every block */
	c->ascend_pool = number_of(MT_SET_ASCEND_POOL) != 0;
	mt_put(c->session, c->session + sizeof(c->session), text_of(MT_SET_SESSION));
	if (*ring_dir && (*ring_dir == '/' || !mt_sys_quiet()))
		mt_put(mt_put_absolute(c->ring_dir, end, ring_dir), end, ring_dir);
	c->joins = !strstr(output, "%p");
	if (mt_sys_may(SYS_getcwd)) /* else no trace is begun: mt_session_open() */
		mt_output_name(c->output, sizeof(c->output), output, c->program, mt_quiet_pid());
}
