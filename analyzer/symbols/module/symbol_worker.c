#include "analyzer/symbols/module/symbol_worker.h"

#include "analyzer/reader/files/file.h"
#include "analyzer/reader/memory_bound.h"
#include "analyzer/symbols/module/module_file.h"
#include "analyzer/symbols/module/symbol_answer.h"
#include "analyzer/util/memory/whole.h"
#include "analyzer/symbols/module/symbol_cache.h"
#include "format/format.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/time.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

/* What reading one module may take: so much, more for each byte of the files that were opened for it, and for each
 * address. Compressed debug sections grow three- to tenfold, and libdw's tables are as large as the sections. */
#define MEMORY_LEAST   (256ull << 20)
#define MEMORY_TIMES   16
#define TIME_LEAST_NS  5000000000ull
#define BYTES_A_SECOND (8ull << 20)
#define ADDRESS_NS     1000000ull
#define LOOK_US        10000 /* of processor time, between looks at what it takes */
#define MOST_FAILURES  4     /* then the other modules are not read either */
#define MOST_OPEN      16    /* files of modules that are kept open */
#define MOST_ANSWER    (1u << 30)

/* How the worker ends itself, as exit status. */
enum end { END_MEMORY = 81, END_TIME };

static const char changed[] = "changed while it was read";

/* ---- the worker: what it takes ------------------------------------------------------------------------- */

static struct {
	bool on;  /* this process is the worker */
	bool off; /* it works on no question */
	int statm;
	long page;
	uint64_t before;   /* bytes of its own that it had */
	uint64_t most;     /* all that it may have, whatever the files */
	uint64_t memory;   /* it may have so much more than before */
	uint64_t until_ns; /* of processor time */
} limits;

static uint64_t cpu_ns(void)
{
	struct timespec t;
	clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &t);
	return (uint64_t)t.tv_sec * 1000000000u + (uint64_t)t.tv_nsec;
}

/* Memory that is no file's. */
static uint64_t own_bytes(void)
{
	char text[128] = "";
	unsigned long resident = 0, shared = 0;
	if (pread(limits.statm, text, sizeof(text) - 1, 0) <= 0)
		return 0;
	char *at = strchr(text, ' ');
	if (at) {
		resident = strtoul(at, &at, 10);
		shared = strtoul(at, NULL, 10);
	}
	return resident > shared ? (resident - shared) * (uint64_t)limits.page : 0;
}

/* Memory grows by computing only, so a timer of processor time sees all that matters. */
static void check_limits(int signal)
{
	(void)signal;
	int saved = errno;
	if (limits.off)
		return;
	if (cpu_ns() > limits.until_ns)
		_exit(END_TIME);
	uint64_t own = own_bytes();
	if (own > limits.before + (limits.memory < limits.most ? limits.memory : limits.most))
		_exit(END_MEMORY);
	errno = saved;
}

static void begin_limits(void)
{
	uint64_t most = UINT64_MAX;
	limits.statm = openat(AT_FDCWD, "/proc/self/statm", O_RDONLY | O_CLOEXEC);
	limits.page = sysconf(_SC_PAGESIZE);
	limits.before = own_bytes();
	memory_bound_bytes(&most);
	limits.most = most / 2;
	limits.on = limits.off = true;
	sigaction(SIGPROF, &(struct sigaction){ .sa_handler = check_limits, .sa_flags = SA_RESTART }, NULL);
	setitimer(ITIMER_PROF, &(struct itimerval){ { 0, LOOK_US }, { 0, LOOK_US } }, NULL);
}

/* For a new question. Of modules that stay open from the last ones the memory counts further. */
static void set_limits(size_t addresses, bool fresh)
{
	uint64_t own = own_bytes();
	if (fresh) {
		limits.before = own;
		limits.memory = MEMORY_LEAST;
	}
	limits.until_ns = cpu_ns() + TIME_LEAST_NS + addresses * ADDRESS_NS;
	limits.off = false;
}

/* A file was opened. What is sparse counts as far as it is there. */
static void pay(uint64_t bytes)
{
	limits.memory += bytes * MEMORY_TIMES;
	limits.until_ns += bytes * (1000000000u / BYTES_A_SECOND);
}

static FILE *opened; /* notes of the files that the question of now asks for; NULL: there is none */

/* NULL: it can't be read. */
static void note_opened(const char *path, const struct stat *st)
{
	struct symbol_opened o = { .path = path };
	int saved = errno;
	if (st) {
		o.size_and_1 = (uint64_t)st->st_size + 1;
		o.written_ns = (uint64_t)st->st_mtim.tv_sec * 1000000000u + (uint64_t)st->st_mtim.tv_nsec;
	}
	if (opened)
		symbol_answer_put_opened(opened, &o);
	errno = saved;
}

/* Stands in for the C library's open() and open64(), also when libdw calls it, which opens debug files, .dwo files and
 * what a .gnu_debugaltlink names by itself: in the worker nothing is opened that is no regular file, nor waited for. */
static int open_regular(const char *path, int flags, mode_t mode)
{
	struct stat st;
	int fd = openat(AT_FDCWD, path, flags | (limits.on ? O_NONBLOCK | O_NOCTTY | O_CLOEXEC : 0), mode);
	if (!limits.on)
		return fd;
	if (fd >= 0 && fstat(fd, &st) == 0 && S_ISREG(st.st_mode)) {
		pay(file_disk_bytes(fd, &st));
		note_opened(path, &st);
		return fd;
	}
	if (fd >= 0) {
		close(fd);
		errno = ENOENT;
	}
	note_opened(path, NULL);
	return -1;
}

static mode_t mode_of(int flags, va_list arguments)
{
	return flags & O_CREAT || (flags & O_TMPFILE) == O_TMPFILE ? va_arg(arguments, mode_t) : 0;
}

#define STAND_IN(own, name) \
	int own(const char *path, int flags, ...) __asm__(name); \
	__attribute__((visibility("default"))) int own(const char *path, int flags, ...) \
	{ \
		va_list arguments; \
		va_start(arguments, flags); \
		mode_t mode = mode_of(flags, arguments); \
		va_end(arguments); \
		return open_regular(path, flags, mode); \
	}
STAND_IN(symbol_worker_open, "open")
STAND_IN(symbol_worker_open64, "open64")

/* ---- the worker: questions ------------------------------------------------------------------------------ */

/* Goes before a question, followed by path, build id and addresses. */
struct head {
	uint64_t seen_ns;
	uint64_t count;
	uint32_t path_bytes, build_id_bytes; /* with the NUL */
	uint32_t more;
	uint32_t any_build_id;
};

/* Goes before an answer, followed by the files that were opened for it and the places (symbol_answer.h). */
struct answer {
	uint64_t opened_bytes, bytes;
	uint32_t state; /* enum symbol_state */
	int status;     /* as waitpid() says it, of a worker that did not come to answer */
};

struct open_module {
	struct module_file *file; /* NULL: free */
	void *key;                /* path, NUL, build id */
	size_t key_bytes;
};

struct worker {
	FILE *in;
	int out;
	struct module_files *files;
	struct open_module open[MOST_OPEN];
	unsigned next; /* to be closed for another one */
};

static void get(struct worker *w, void *to, size_t n)
{
	if (n && fread(to, n, 1, w->in) != 1)
		_exit(0); /* nobody asks any more */
}

static void *need(void *p)
{
	if (!p)
		_exit(END_MEMORY);
	return p;
}

static void *get_new(struct worker *w, size_t n)
{
	void *p = need(malloc(n + 1));
	get(w, p, n);
	return p;
}

static void put_place(FILE *to, struct module_file *file, uint64_t address)
{
	struct frame frames[MT_SYMBOLS_MAX_FRAMES];
	size_t count = module_file_find(file, address, frames, MT_SYMBOLS_MAX_FRAMES);
	symbol_answer_put_place(to, address, frames, count);
}

static void close_module(struct open_module *m)
{
	module_file_close(m->file);
	free(m->key);
	*m = (struct open_module){ 0 };
}

static struct open_module *find_open(struct worker *w, const void *key, size_t bytes)
{
	for (unsigned i = 0; i < MOST_OPEN; i++)
		if (w->open[i].file && w->open[i].key_bytes == bytes && !memcmp(w->open[i].key, key, bytes))
			return &w->open[i];
	return NULL;
}

/* Takes the key. */
static struct open_module *open_module(struct worker *w, void *key, size_t bytes, const struct module_id *id,
				       enum symbol_state *state)
{
	struct module_file *file = module_file_open(w->files, id, state);
	if (!file) {
		free(key);
		return NULL;
	}
	struct open_module *m = &w->open[w->next++ % MOST_OPEN];
	close_module(m);
	*m = (struct open_module){ file, key, bytes };
	return m;
}

struct asked {
	uint64_t address;
	uint32_t unit;
};

static int by_unit(const void *a, const void *b)
{
	const struct asked *x = a, *y = b;
	if (x->unit != y->unit)
		return x->unit < y->unit ? -1 : 1;
	return (x->address > y->address) - (x->address < y->address);
}

/* Unit after unit, since each is read for its first address, and not all can be kept: the linker may have mixed their
 * functions. The file is opened anew where too much was read. */
static enum symbol_state look_up(struct worker *w, struct open_module *m, const struct module_id *id,
				 struct asked *asked, size_t count, FILE *to)
{
	enum symbol_state state = SYMBOLS_READ;
	for (size_t i = 0; i < count; i++)
		asked[i].unit = module_file_unit(m->file, asked[i].address);
	qsort(asked, count, sizeof(*asked), by_unit);
	for (size_t i = 0; i < count; i++) {
		put_place(to, m->file, asked[i].address);
		if (i + 1 == count || asked[i + 1].unit == asked[i].unit || !module_file_is_large(m->file))
			continue;
		module_file_close(m->file);
		m->file = module_file_open(w->files, id, &state);
		if (!m->file)
			return SYMBOLS_GIVEN_UP;
	}
	return module_file_is_unchanged(m->file) ? SYMBOLS_READ : SYMBOLS_GIVEN_UP;
}

static void send_all(int fd, const void *from, size_t n)
{
	for (const char *at = from; n;) {
		ssize_t sent = send(fd, at, n, MSG_NOSIGNAL);
		if (sent < 0 && errno == EINTR)
			continue;
		if (sent < 0)
			return; /* the other side is gone, and the next read says so */
		at += sent;
		n -= (size_t)sent;
	}
}

struct text {
	FILE *file;
	char *base;
	size_t bytes;
};

static void text_open(struct text *t)
{
	t->file = need(open_memstream(&t->base, &t->bytes));
}

static void text_close(struct text *t)
{
	bool whole = !ferror(t->file);
	if (fclose(t->file) || !whole)
		_exit(END_MEMORY);
}

static void answer(struct worker *w, enum symbol_state state, const struct text *files, const struct text *places)
{
	limits.off = true; /* not in the middle of it */
	const bool read = state == SYMBOLS_READ;
	struct answer a = { .opened_bytes = read ? files->bytes : 0,
			    .bytes = read ? places->bytes : 0,
			    .state = state };
	send_all(w->out, &a, sizeof(a));
	send_all(w->out, files->base, a.opened_bytes);
	send_all(w->out, places->base, a.bytes);
}

/* Names that were made stay, since those of other modules are often the same. */
static void serve(struct worker *w)
{
	struct head h;
	enum symbol_state state = SYMBOLS_READ;
	struct text files = { 0 }, places = { 0 };
	get(w, &h, sizeof(h));
	size_t key_bytes = (size_t)h.path_bytes + h.build_id_bytes;
	char *key = get_new(w, key_bytes);
	struct module_id id = { .path = key,
				.build_id = key + h.path_bytes,
				.build_id_bytes = h.build_id_bytes,
				.seen_ns = h.seen_ns,
				.any_build_id = h.any_build_id };
	struct asked *asked = need(calloc(h.count + 1, sizeof(*asked)));
	for (size_t i = 0; i < h.count; i++)
		get(w, &asked[i].address, sizeof(asked[i].address));
	struct open_module *m = find_open(w, key, key_bytes);
	set_limits(h.count, !m);
	text_open(&files);
	opened = files.file;
	if (m)
		free(key);
	else
		m = open_module(w, key, key_bytes, &id, &state);
	id.path = m ? m->key : NULL;
	id.build_id = m ? (char *)m->key + h.path_bytes : NULL;
	text_open(&places);
	if (m)
		state = look_up(w, m, &id, asked, h.count, places.file);
	opened = NULL;
	text_close(&files);
	text_close(&places);
	answer(w, state, &files, &places);
	if (m && (!h.more || state != SYMBOLS_READ))
		close_module(m);
	free(files.base);
	free(places.base);
	free(asked);
}

static void run_worker(int fd)
{
	struct worker w = { .in = fdopen(fd, "r"), .out = fd };
	signal(SIGBUS, SIG_DFL);
	setrlimit(RLIMIT_CORE, &(struct rlimit){ 0, 0 });
	begin_limits();
	w.files = module_files_new();
	if (!w.in || !w.files)
		_exit(END_MEMORY);
	for (;;)
		serve(&w);
}

/* Has a worker at all times. What ends one is said in its place; it ends by itself when nobody asks any more. */
static void keep_worker(int fd)
{
	int status = 0;
	for (;;) {
		pid_t pid = fork();
		if (pid == 0)
			run_worker(fd);
		while (pid > 0 && waitpid(pid, &status, 0) < 0 && errno == EINTR)
			;
		if (pid < 0 || (WIFEXITED(status) && WEXITSTATUS(status) == 0))
			_exit(0);
		struct answer a = { .state = SYMBOLS_GIVEN_UP, .status = status };
		send_all(fd, &a, sizeof(a));
	}
}

/* ---- who asks ------------------------------------------------------------------------------------------- */

struct symbol_worker {
	pid_t keeper; /* 0: none */
	int fd;
	unsigned failures;
};

struct symbol_worker *symbol_worker_new(void)
{
	return calloc(1, sizeof(struct symbol_worker));
}

bool symbol_worker_start(struct symbol_worker *w)
{
	int pair[2];
	if (w->keeper)
		return true;
	if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, pair))
		return false;
	w->keeper = fork();
	if (w->keeper == 0) {
		close(pair[0]);
		keep_worker(pair[1]);
	}
	close(pair[1]);
	if (w->keeper > 0) {
		w->fd = pair[0];
		return true;
	}
	w->keeper = 0;
	close(pair[0]);
	return false;
}

static void stop(struct symbol_worker *w)
{
	if (!w->keeper)
		return;
	shutdown(w->fd, SHUT_RDWR); /* a process that was started later has it, too */
	close(w->fd);
	while (waitpid(w->keeper, NULL, 0) < 0 && errno == EINTR)
		;
	w->keeper = 0;
}

void symbol_worker_free(struct symbol_worker *w)
{
	if (w)
		stop(w);
	free(w);
}

void symbol_worker_forget(struct symbol_worker *w)
{
	w->keeper = 0;
}

static const char *reason(int status)
{
	if (WIFEXITED(status) && WEXITSTATUS(status) == END_MEMORY)
		return "would take too much memory";
	if (WIFEXITED(status) && WEXITSTATUS(status) == END_TIME)
		return "would take too long";
	return WIFSIGNALED(status) && WTERMSIG(status) == SIGBUS ? changed : "can't be read";
}

static void ask(int fd, const struct symbol_question *q)
{
	struct head h = { .seen_ns = q->id.seen_ns,
			  .count = q->count,
			  .path_bytes = (uint32_t)strlen(q->id.path) + 1,
			  .build_id_bytes = (uint32_t)q->id.build_id_bytes,
			  .more = q->more,
			  .any_build_id = q->id.any_build_id };
	send_all(fd, &h, sizeof(h));
	send_all(fd, q->id.path, h.path_bytes);
	send_all(fd, q->id.build_id, h.build_id_bytes);
	send_all(fd, q->addresses, q->count * sizeof(*q->addresses));
}

/* The worker may have gone mad over a file: its answer is believed as far as it makes sense. */
static bool take_places(const uint8_t *bytes, size_t n, symbol_worker_take *take, void *data)
{
	struct varint_in in = { bytes, bytes + n, 0 };
	struct frame frames[MT_SYMBOLS_MAX_FRAMES];
	uint64_t address;
	size_t count;
	while (in.at < in.end) {
		if (!symbol_answer_get_place(&in, &address, frames, &count))
			return false;
		take(data, address, frames, count);
	}
	return true;
}

static void take_opened(const uint8_t *bytes, size_t n, const struct symbol_question *q, void *data)
{
	struct varint_in in = { bytes, bytes + n, 0 };
	struct symbol_opened o;
	while (in.at < in.end && symbol_answer_get_opened(&in, &o))
		q->opened(data, &o);
}

static bool get_answer(struct symbol_worker *w, const struct symbol_question *q, struct answer *a,
		       symbol_worker_take *take, void *data)
{
	if (!whole_read(w->fd, a, sizeof(*a)) || a->state > SYMBOLS_GIVEN_UP || a->bytes > MOST_ANSWER ||
	    a->opened_bytes > MOST_ANSWER)
		return false;
	uint8_t *bytes = malloc(a->opened_bytes + a->bytes + 1);
	bool good = bytes && whole_read(w->fd, bytes, a->opened_bytes + a->bytes) &&
		    take_places(bytes + a->opened_bytes, a->bytes, take, data);
	if (good)
		take_opened(bytes, a->opened_bytes, q, data);
	if (good && a->state == SYMBOLS_READ && q->cache)
		symbol_cache_add(q->cache, bytes, a->opened_bytes, bytes + a->opened_bytes, a->bytes);
	free(bytes);
	return good;
}

enum symbol_state symbol_worker_ask(struct symbol_worker *w, const struct symbol_question *q, symbol_worker_take *take,
				    void *data, const char **why)
{
	struct answer a;
	*why = "not read, others would take too much";
	if (w->failures >= MOST_FAILURES)
		return SYMBOLS_GIVEN_UP;
	*why = "can't be read";
	if (!symbol_worker_start(w))
		return SYMBOLS_GIVEN_UP;
	ask(w->fd, q);
	if (!get_answer(w, q, &a, take, data)) {
		w->failures++;
		stop(w);
		return SYMBOLS_GIVEN_UP;
	}
	w->failures += a.status != 0;
	*why = a.status ? reason(a.status) : changed;
	return a.state;
}
