#include "analyzer/attach/target.h"
#include "analyzer/attach/arch.h"
#include "analyzer/util/error.h"

#include <dirent.h>
#include <elf.h>
#include <errno.h>
#include <fcntl.h>
#include <pwd.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define TRIES        10
#define MOST_SYMBOLS (1u << 20)
#define MOST_NAMES   (256u << 20)

static int no(const struct target *t, const char *format, const char *detail)
{
	char name[32], why[400];
	snprintf(name, sizeof(name), "%d", (int)t->pid);
	snprintf(why, sizeof(why), format, detail);
	return error_set(MT_EATTACH, name, ERROR_NO_OFFSET, "%s", why);
}

static FILE *open_proc(const struct target *t, const char *file)
{
	char path[96];
	snprintf(path, sizeof(path), "/proc/%d/%s", (int)t->pid, file);
	return fopen(path, "re");
}

/* A field of a file of "Name: value" lines, without the blanks before it; "" = it has none. */
static void field(const char *path, const char *name, char *value, size_t size)
{
	char line[256];
	FILE *f = fopen(path, "re");
	*value = '\0';
	while (f && fgets(line, sizeof(line), f))
		if (!strncmp(line, name, strlen(name))) {
			const char *at = line + strlen(name) + strspn(line + strlen(name), ": \t");
			snprintf(value, size, "%.*s", (int)strcspn(at, "\n"), at);
			break;
		}
	if (f)
		fclose(f);
}

static void status(pid_t pid, const char *name, char *value, size_t size)
{
	char path[64];
	snprintf(path, sizeof(path), "/proc/%d/status", (int)pid);
	field(path, name, value, size);
}

static long status_number(pid_t pid, const char *name)
{
	char value[64];
	status(pid, name, value, sizeof(value));
	return strtol(value, NULL, 10);
}

/* ---- rights ---- */

static long yama(void)
{
	char value[16] = "";
	FILE *f = fopen("/proc/sys/kernel/yama/ptrace_scope", "re");
	if (f && !fgets(value, sizeof(value), f))
		*value = '\0';
	if (f)
		fclose(f);
	return strtol(value, NULL, 10);
}

static int refused(const struct target *t)
{
	if (t->uid != geteuid() && geteuid() != 0) {
		const struct passwd *user = getpwuid(t->uid);
		char number[16];
		snprintf(number, sizeof(number), "%u", t->uid);
		return no(t, "belongs to the user %s: run memtrace start as that user, or as root",
			  user ? user->pw_name : number);
	}
	if (yama() >= 3)
		return no(t, "kernel.yama.ptrace_scope is 3: nobody may attach to a program on this machine%s", "");
	if (yama() && geteuid() != 0)
		return no(t,
			  "kernel.yama.ptrace_scope lets only root attach to a program: run it as root, or set it to 0 "
			  "(sysctl kernel.yama.ptrace_scope=0)%s",
			  "");
	if (geteuid() == 0)
		return no(t, "CAP_SYS_PTRACE is missing: in a container, start that with --cap-add=SYS_PTRACE%s", "");
	return no(t, "has rights that you have not (set-uid, or capabilities): run memtrace start as root%s", "");
}

static int open_memory(struct target *t)
{
	char path[64];
	snprintf(path, sizeof(path), "/proc/%d/mem", (int)t->pid);
	t->memory = open(path, O_RDWR | O_CLOEXEC);
	return t->memory < 0 ? refused(t) : 0;
}

bool target_read(const struct target *t, uint64_t at, void *to, size_t bytes)
{
	return pread(t->memory, to, bytes, (off_t)at) == (ssize_t)bytes;
}

/* ---- mappings ---- */

int target_ranges(struct target *t)
{
	char *line = NULL;
	size_t size = 0, room = 0;
	FILE *f = open_proc(t, "maps");
	free(t->ranges);
	t->ranges = NULL;
	t->range_count = 0;
	if (!f)
		return error_errno(MT_EATTACH, t->program, ERROR_NO_OFFSET);
	while (getline(&line, &size, f) > 0) {
		struct target_range r = { 0 };
		int at = 0;
		unsigned long start, end, offset;
		if (sscanf(line, "%lx-%lx %4s %lx %*s %*s %n", &start, &end, r.prot, &offset, &at) < 4)
			continue;
		if (t->range_count == room) {
			room = room ? 2 * room : 256;
			void *more = realloc(t->ranges, room * sizeof(*t->ranges));
			if (!more)
				break;
			t->ranges = more;
		}
		r.start = start;
		r.end = end;
		r.offset = offset;
		if (at)
			snprintf(r.path, sizeof(r.path), "%.*s", (int)strcspn(line + at, "\n"), line + at);
		t->ranges[t->range_count++] = r;
	}
	free(line);
	fclose(f);
	return t->range_count ? 0 : no(t, "has no memory: it has ended, or is a thread of the kernel%s", "");
}

const struct target_range *target_range(const struct target *t, uint64_t at)
{
	for (size_t i = 0; i < t->range_count; i++)
		if (at >= t->ranges[i].start && at < t->ranges[i].end)
			return &t->ranges[i];
	return NULL;
}

/* ---- modules, as they are in memory ---- */

struct tables {
	uint64_t bias, symbols, names, hash, name_bytes;
};

static bool find_tables(const struct target *t, uint64_t base, struct tables *out)
{
	Elf64_Ehdr head;
	uint64_t dynamic = 0, bias = base;
	if (!target_read(t, base, &head, sizeof(head)) || memcmp(head.e_ident, ELFMAG, SELFMAG) || head.e_phnum > 128)
		return false;
	for (unsigned i = 0; i < head.e_phnum; i++) {
		Elf64_Phdr ph;
		if (!target_read(t, base + head.e_phoff + i * sizeof(ph), &ph, sizeof(ph)))
			return false;
		if (ph.p_type == PT_DYNAMIC)
			dynamic = ph.p_vaddr;
		if (ph.p_type == PT_LOAD && ph.p_offset == 0)
			bias = base - ph.p_vaddr;
	}
	*out = (struct tables){ .bias = bias };
	for (unsigned i = 0; dynamic && i < 256; i++) {
		Elf64_Dyn d;
		if (!target_read(t, bias + dynamic + i * sizeof(d), &d, sizeof(d)) || d.d_tag == DT_NULL)
			break;
		uint64_t at = d.d_un.d_ptr < bias ? d.d_un.d_ptr + bias : d.d_un.d_ptr;
		if (d.d_tag == DT_SYMTAB)
			out->symbols = at;
		if (d.d_tag == DT_STRTAB)
			out->names = at;
		if (d.d_tag == DT_GNU_HASH)
			out->hash = at;
		if (d.d_tag == DT_STRSZ)
			out->name_bytes = d.d_un.d_val;
	}
	return out->symbols && out->names && out->hash;
}

/* As many as the chains of the table of hashes reach to. */
static uint32_t count_symbols(const struct target *t, uint64_t hash)
{
	uint32_t head[4], last = 0, word = 0;
	if (!target_read(t, hash, head, sizeof(head)) || head[0] > MOST_SYMBOLS || head[2] > MOST_SYMBOLS)
		return 0;
	uint64_t buckets = hash + 16 + 8 * (uint64_t)head[2], chains = buckets + 4 * (uint64_t)head[0];
	for (uint32_t i = 0; i < head[0]; i++)
		if (target_read(t, buckets + 4 * (uint64_t)i, &word, 4) && word > last)
			last = word;
	if (last < head[1])
		return 0;
	while (last < MOST_SYMBOLS && target_read(t, chains + 4 * (uint64_t)(last - head[1]), &word, 4)) {
		last++;
		if (word & 1)
			break;
	}
	return last;
}

static int compare(const void *a, const void *b)
{
	const struct target_symbol *x = a, *y = b;
	return (x->start > y->start) - (x->start < y->start);
}

static void read_symbols(const struct target *t, struct target_module *m, const struct tables *at)
{
	uint32_t n = count_symbols(t, at->hash);
	Elf64_Sym *table = n ? calloc(n, sizeof(*table)) : NULL;
	char *names = at->name_bytes < MOST_NAMES ? malloc(at->name_bytes + 1) : NULL;
	m->symbols = n ? calloc(n, sizeof(*m->symbols)) : NULL;
	bool ok = table && names && m->symbols && target_read(t, at->symbols, table, n * sizeof(*table)) &&
		  target_read(t, at->names, names, at->name_bytes);
	for (uint32_t i = 1; ok && i < n; i++) {
		struct target_symbol *s = &m->symbols[m->count];
		int type = ELF64_ST_TYPE(table[i].st_info);
		if (table[i].st_shndx == SHN_UNDEF || (type != STT_FUNC && type != STT_OBJECT) ||
		    table[i].st_name >= at->name_bytes)
			continue;
		names[at->name_bytes] = '\0';
		snprintf(s->name, sizeof(s->name), "%s", names + table[i].st_name);
		s->start = at->bias + table[i].st_value;
		s->end = s->start + table[i].st_size;
		m->count++;
	}
	free(table);
	free(names);
	if (m->count)
		qsort(m->symbols, m->count, sizeof(*m->symbols), compare);
}

bool target_module(const struct target *t, struct target_module *m, const char *prefix, const char *contains)
{
	*m = (struct target_module){ 0 };
	for (size_t i = 0; i < t->range_count; i++) {
		const struct target_range *r = &t->ranges[i];
		const char *name = strrchr(r->path, '/');
		if (!m->base && !r->offset && name && !strncmp(name + 1, prefix, strlen(prefix)) &&
		    strstr(name, contains))
			m->base = r->start;
		if (m->base && name && !strncmp(name + 1, prefix, strlen(prefix)) && strstr(name, contains))
			m->end = r->end;
	}
	struct tables at;
	if (m->base && find_tables(t, m->base, &at))
		read_symbols(t, m, &at);
	return m->count != 0;
}

void target_module_free(struct target_module *m)
{
	free(m->symbols);
	*m = (struct target_module){ 0 };
}

uint64_t target_function(const struct target_module *m, const char *name)
{
	for (size_t i = 0; i < m->count; i++)
		if (!strcmp(m->symbols[i].name, name))
			return m->symbols[i].start;
	return 0;
}

const struct target_symbol *target_symbol(const struct target_module *m, uint64_t at)
{
	for (size_t i = 0; i < m->count && m->symbols[i].start <= at; i++)
		if (at < m->symbols[i].end)
			return &m->symbols[i];
	return NULL;
}

/* ---- the loader's lock ---- */

/* A mutex as glibc has it, of the kind that one thread may take more than once: the loader's are. */
struct target_mutex {
	int32_t lock;
	uint32_t count;
	int32_t owner; /* as the target numbers its threads */
	uint32_t users;
	int32_t kind;
	int32_t spins;
	uint64_t previous, next;
};

enum { MOST_LOADER_DATA = 65536, RECURSIVE = 1 };

/* The thread that has that number in its own namespace, which is the last one that its status names. */
static bool find_thread(const struct target *t, int32_t number, char tid[24])
{
	char path[80], value[200];
	bool found = false;
	snprintf(path, sizeof(path), "/proc/%d/task", (int)t->pid);
	DIR *d = opendir(path);
	for (struct dirent *e; d && !found && (e = readdir(d)) != NULL;) {
		snprintf(tid, 24, "%.20s", e->d_name);
		snprintf(path, sizeof(path), "/proc/%d/task/%s/status", (int)t->pid, tid);
		field(path, "NSpid", value, sizeof(value));
		const char *last = strrchr(value, '\t');
		found = *value && strtol(last ? last + 1 : value, NULL, 10) == number;
	}
	if (d)
		closedir(d);
	return found;
}

static bool waits(const struct target *t, const char *tid)
{
	char file[64], text[16] = "";
	snprintf(file, sizeof(file), "task/%s/syscall", tid);
	FILE *f = open_proc(t, file);
	bool known = f && fgets(text, sizeof(text), f);
	if (f)
		fclose(f);
	return known && strncmp(text, "running", 7) != 0;
}

static bool is_held(const struct target *t, const struct target_mutex *m)
{
	char tid[24];
	return (m->lock == 1 || m->lock == 2) && m->count > 0 && m->count < 1000 && m->owner > 0 && m->users == 1 &&
	       m->kind == RECURSIVE && !m->spins && !m->previous && !m->next && find_thread(t, m->owner, tid) &&
	       waits(t, tid);
}

bool target_loader_is_busy(const struct target *t)
{
	static uint64_t data[MOST_LOADER_DATA / sizeof(uint64_t)];
	const struct target_symbol *s = NULL;
	for (size_t i = 0; i < t->loader.count && !s; i++)
		s = strcmp(t->loader.symbols[i].name, "_rtld_global") ? NULL : &t->loader.symbols[i];
	size_t bytes = s ? s->end - s->start : 0;
	if (!bytes || bytes > sizeof(data) || s->start % sizeof(uint64_t) || !target_read(t, s->start, data, bytes))
		return false;
	for (size_t at = 0; at + sizeof(struct target_mutex) <= bytes; at += sizeof(uint64_t))
		if (is_held(t, (const struct target_mutex *)(const void *)((const char *)data + at)))
			return true;
	return false;
}

/* ---- what it is ---- */

/* Also where its parent has not asked for it yet. */
bool target_has_ended(const struct target *t)
{
	char value[64];
	status(t->pid, "State", value, sizeof(value));
	return !*value || *value == 'Z' || *value == 'X';
}

static int look_at_status(struct target *t)
{
	char value[64], other[128];
	long tracer = status_number(t->pid, "TracerPid"), group = status_number(t->pid, "Tgid");
	status(t->pid, "Name", t->program, sizeof(t->program));
	status(t->pid, "State", value, sizeof(value));
	if (!*value)
		return no(t, "no such process%s", "");
	if (group != t->pid) {
		snprintf(other, sizeof(other), "%ld", group);
		return no(t, "is a thread of process %s: name that", other);
	}
	t->uid = (uint32_t)status_number(t->pid, "Uid");
	t->gid = (uint32_t)status_number(t->pid, "Gid");
	if (target_has_ended(t))
		return no(t, "has ended%s", "");
	if (tracer) {
		char name[64];
		status((pid_t)tracer, "Name", name, sizeof(name));
		snprintf(other, sizeof(other), "%s (%ld)", name, tracer);
		return no(t, "is traced by %s: a program has one tracer at a time", other);
	}
	if (*value == 'T' || *value == 't')
		return no(t, "is stopped: continue it (kill -CONT) and attach then%s", "");
	return 0;
}

/* A filter that the process has in common with its parent or with the first of its container allows what a loader
 * does. */
static int look_at_filters(const struct target *t)
{
	long mode = status_number(t->pid, "Seccomp"), filters = status_number(t->pid, "Seccomp_filters");
	long parent = status_number(t->pid, "PPid");
	if (!mode)
		return 0;
	if (mode == 2 && parent > 0 && status_number((pid_t)parent, "Seccomp_filters") == filters)
		return 0;
	return no(t, "has a system call filter of its own, which may kill it for loading a library%s", "");
}

static int look_at_program(struct target *t)
{
	char path[64], interpreter[256] = "";
	Elf64_Ehdr head;
	snprintf(path, sizeof(path), "/proc/%d/exe", (int)t->pid);
	int fd = open(path, O_RDONLY | O_CLOEXEC);
	if (fd < 0)
		return errno == ENOENT ? no(t, "has no program: it has ended, or is a thread of the kernel%s", "")
				       : refused(t);
	bool read_head = pread(fd, &head, sizeof(head), 0) == (ssize_t)sizeof(head);
	for (unsigned i = 0; read_head && i < head.e_phnum; i++) {
		Elf64_Phdr ph;
		if (pread(fd, &ph, sizeof(ph), (off_t)(head.e_phoff + i * sizeof(ph))) == (ssize_t)sizeof(ph) &&
		    ph.p_type == PT_INTERP && pread(fd, interpreter, sizeof(interpreter) - 1, (off_t)ph.p_offset) < 1)
			break;
	}
	close(fd);
	Elf64_Ehdr own = { 0 };
	fd = open("/proc/self/exe", O_RDONLY | O_CLOEXEC);
	bool same = fd >= 0 && pread(fd, &own, sizeof(own), 0) == (ssize_t)sizeof(own) && read_head &&
		    own.e_machine == head.e_machine && own.e_ident[EI_CLASS] == head.e_ident[EI_CLASS];
	if (fd >= 0)
		close(fd);
	if (!same)
		return no(t, "is for another kind of machine than libmemtrace.so%s", "");
	if (!*interpreter)
		return no(t, "is statically linked (as Go programs are): it has no loader for libmemtrace.so%s", "");
	if (strstr(interpreter, "musl"))
		return no(t, "is a program of musl, whose loader can't be asked: start it with memtrace run%s", "");
	return 0;
}

static bool is_secure(const struct target *t)
{
	Elf64_auxv_t a;
	FILE *f = open_proc(t, "auxv");
	bool secure = false;
	while (f && fread(&a, sizeof(a), 1, f) == 1)
		secure = secure || (a.a_type == AT_SECURE && a.a_un.a_val);
	if (f)
		fclose(f);
	return secure;
}

static bool find_library(struct target *t)
{
	target_module_free(&t->libc);
	target_module_free(&t->loader);
	return (target_module(t, &t->libc, "libc.so.6", "") || target_module(t, &t->libc, "libc-2.", ".so")) &&
	       (target_module(t, &t->loader, "ld-linux", "") || target_module(t, &t->loader, "ld-2.", ".so") ||
		target_module(t, &t->loader, "ld64", ""));
}

static int look_at_modules(struct target *t)
{
	static const char *const sanitizers[] = { "/libasan.", "/libtsan.", "/liblsan.", "/libhwasan.",
						  "/libclang_rt." };
	for (size_t i = 0; i < t->range_count; i++)
		for (size_t k = 0; k < sizeof(sanitizers) / sizeof(sanitizers[0]); k++)
			if (strstr(t->ranges[i].path, sanitizers[k]))
				return no(t, "has a sanitizer's run time: such programs are left alone%s", "");
	bool known = find_library(t);
	for (int tries = 0; tries < TRIES && !known && target_ranges(t) == 0; tries++)
		known = find_library(t); /* the list is not of one moment where libraries come and go */
	if (!known && (!t->range_count || target_has_ended(t)))
		return no(t, "has ended%s", "");
	if (!known)
		return no(t, "has no C library of GNU that is known%s", "");
	char exe[600], path[64];
	snprintf(path, sizeof(path), "/proc/%d/exe", (int)t->pid);
	ssize_t n = readlink(path, exe, sizeof(exe) - 1);
	exe[n < 0 ? 0 : n] = '\0';
	const char *name = strrchr(exe, '/');
	struct target_module program;
	if (name && target_module(t, &program, name + 1, "")) {
		t->own_malloc = target_function(&program, "malloc") != 0;
		bool sanitized = target_function(&program, "__asan_init") || target_function(&program, "__tsan_init") ||
				 target_function(&program, "__msan_init");
		target_module_free(&program);
		if (sanitized)
			return no(t, "has a sanitizer's run time: such programs are left alone%s", "");
	}
	return 0;
}

static void look_at_place(struct target *t)
{
	char path[64], value[64];
	struct stat own, other;
	snprintf(path, sizeof(path), "/proc/%d/root", (int)t->pid);
	t->other_root =
		stat("/", &own) || stat(path, &other) || own.st_dev != other.st_dev || own.st_ino != other.st_ino;
	snprintf(path, sizeof(path), "/proc/%d/limits", (int)t->pid);
	field(path, "Max stack size", value, sizeof(value));
	t->stack_limit = *value >= '0' && *value <= '9' ? strtoull(value, NULL, 10) : UINT64_MAX;
}

int target_open(struct target *t, pid_t pid)
{
	*t = (struct target){ .pid = pid, .memory = -1 };
	if (!ARCH_ATTACHES)
		return no(t, "attaching is not ported to this machine%s", "");
	int e = look_at_status(t);
	if (!e)
		e = look_at_program(t);
	if (!e)
		e = open_memory(t);
	if (!e && is_secure(t))
		e = no(t, "is set-uid or has gained rights: nothing of such a program is recorded%s", "");
	if (!e)
		e = look_at_filters(t);
	if (!e)
		e = target_ranges(t);
	if (!e)
		e = look_at_modules(t);
	if (!e)
		look_at_place(t);
	return e;
}

void target_close(struct target *t)
{
	if (t->memory >= 0)
		close(t->memory);
	free(t->ranges);
	target_module_free(&t->libc);
	target_module_free(&t->loader);
	*t = (struct target){ .memory = -1 };
}
