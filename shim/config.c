#include <elf.h>
#include <stdlib.h>
#include <string.h>
#include <sys/auxv.h>

#include "format/format.h"
#include "format/output_name.h"
#include "format/own_program.h"
#include "shim/config.h"
#include "shim/sys.h"

struct mt_config mt_config;

void mt_say(const char *what, const char *detail)
{
	char line[512], *at = line, *end = line + sizeof(line) - 1;

	if (!mt_config.verbose)
		return;
	at = mt_put(at, end, "memtrace: ");
	at = mt_put(at, end, what);
	at = mt_put(at, end, detail);
	*at++ = '\n';
	MT_SYS3(SYS_write, 2, line, at - line);
}

static uint64_t bytes_of(const char *s, uint64_t otherwise)
{
	char *end;
	uint64_t n;

	if (!s || !*s)
		return otherwise;
	n = strtoull(s, &end, 10);
	switch (*end | 0x20) {
	case 'k': return n << 10;
	case 'm': return n << 20;
	case 'g': return n << 30;
	case 't': return n << 40;
	}
	return end == s ? otherwise : n;
}

#define ALIGN4(n) (((size_t)(n) + 3) & ~(size_t)3)

static int has_own_note(const char *at, size_t bytes)
{
	while (bytes >= sizeof(Elf64_Nhdr)) {
		const Elf64_Nhdr *note = (const Elf64_Nhdr *)at;
		size_t whole = sizeof(*note) + ALIGN4(note->n_namesz) + ALIGN4(note->n_descsz);
		if (note->n_type == MT_OWN_NOTE_TYPE && note->n_namesz == sizeof(MT_OWN_NOTE_NAME) &&
		    whole <= bytes && !memcmp(note + 1, MT_OWN_NOTE_NAME, sizeof(MT_OWN_NOTE_NAME)))
			return 1;
		if (whole >= bytes)
			break;
		at += whole;
		bytes -= whole;
	}
	return 0;
}

/* The memtrace program's figures are nobody's, and it would be the newest trace when it looks for that. Its notes are in memory already. */
static int is_own_program(void)
{
	const Elf64_Phdr *ph = (const Elf64_Phdr *)getauxval(AT_PHDR);
	size_t n = ph ? getauxval(AT_PHNUM) : 0;
	uintptr_t bias = 0;

	for (size_t i = 0; i < n; i++)
		if (ph[i].p_type == PT_PHDR)
			bias = (uintptr_t)ph - ph[i].p_vaddr;
	for (size_t i = 0; i < n; i++)
		if (ph[i].p_type == PT_NOTE && ph[i].p_align <= 4 && has_own_note((const char *)(bias + ph[i].p_vaddr), ph[i].p_memsz))
			return 1;
	return 0;
}

/* AT_EXECFN is what was passed to execve: for a `#!` script the script, while argv[0] is its interpreter. */
static void find_program(void)
{
	const char *path = (const char *)getauxval(AT_EXECFN);

	mt_put(mt_config.program, mt_config.program + sizeof(mt_config.program), path ? mt_base_name(path) : "program");
}

static int glob_matches(const char *glob, size_t n, const char *s)
{
	if (n == 0)
		return *s == 0;
	if (*glob == '*')
		return glob_matches(glob + 1, n - 1, s) || (*s && glob_matches(glob, n, s + 1));
	return *s && (*glob == '?' || *glob == *s) && glob_matches(glob + 1, n - 1, s + 1);
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

static const char *setting(const char *name, const char *otherwise)
{
	const char *value = getenv(name);

	return value && *value ? value : otherwise;
}

static uint32_t stacks_of(const char *s)
{
	return !strcmp(s, "none") ? MT_STACKS_NONE : !strcmp(s, "sample") ? MT_STACKS_SAMPLE : MT_STACKS_ALL;
}

void mt_config_read(void)
{
	struct mt_config *c = &mt_config;
	const char *ring_dir = getenv("MEMTRACE_RING_DIR"), *output = setting("MEMTRACE_OUTPUT", MT_OUTPUT_DEFAULT);
	char *end = c->ring_dir + sizeof(c->ring_dir);

	find_program();
	c->verbose = *setting("MEMTRACE_VERBOSE", "0") != '0';
	c->off = getauxval(AT_SECURE) != 0 || is_own_program() || excluded(getenv("MEMTRACE_EXCLUDE"));
	c->children = *setting("MEMTRACE_CHILDREN", "1") != '0';
	c->paused = *setting("MEMTRACE_PAUSED", "0") != '0';
	c->python_allocators = *setting("MEMTRACE_PYTHON_ALLOCATORS", "0") != '0';
	c->python = *setting("MEMTRACE_PYTHON", "1") != '0';
	c->stacks = stacks_of(setting("MEMTRACE_STACKS", "all"));
	c->sample_bytes = bytes_of(getenv("MEMTRACE_SAMPLE"), 512 << 10);
	c->sample_seed = bytes_of(getenv("MEMTRACE_SAMPLE_SEED"), 0);
	c->depth = (uint32_t)bytes_of(getenv("MEMTRACE_DEPTH"), 1024);
	if (c->depth < 1 || c->depth > 4096)
		c->depth = 1024;
	c->limit_bytes = bytes_of(getenv("MEMTRACE_LIMIT"), 4ull << 30);
	c->keep_free_bytes = bytes_of(getenv("MEMTRACE_KEEP_FREE"), 1ull << 30);
	mt_put(c->session, c->session + sizeof(c->session), setting("MEMTRACE_SESSION", ""));
	if (ring_dir && *ring_dir)
		mt_put(mt_put_absolute(c->ring_dir, end, ring_dir), end, ring_dir);
	c->joins = !strstr(output, "%p");
	mt_output_name(c->output, sizeof(c->output), output, c->program, mt_sys_pid());
}
