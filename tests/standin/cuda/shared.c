#include "shared.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

enum { ENTRIES = 512, MAGIC = 0x31446453 };

struct entry {
	int pid; /* 0: nobody's */
	uint64_t start; /* tells a pid from its later namesakes */
	uint64_t bytes[SD_DEVICES];
};

struct shared {
	uint32_t magic;
	pthread_mutex_t lock;
	struct entry entries[ENTRIES];
};

static struct {
	int count, pid_shift, log;
	uint64_t size[SD_DEVICES], context, granularity;
	unsigned serial, late;
	struct shared *shared;
	struct entry *own;
} sd;
static pthread_once_t once = PTHREAD_ONCE_INIT;

/* ---- configuration ---- */

/*
 * memtrace's recorder looks at devices from a process of its own that has none of the program's environment. There the
 * settings are those of a program whose trace lies in the directory that the recorder was given as argument.
 */
static char *borrowed; /* a /proc/PID/environ, ending with two zeros */
enum { ENVIRON_MAX = 1 << 20 };

static size_t read_file(const char *path, char *to, size_t max)
{
	int fd = open(path, O_RDONLY | O_CLOEXEC);
	size_t n = 0;
	for (ssize_t got = 1; fd >= 0 && got > 0 && n < max; n += got > 0 ? (size_t)got : 0)
		got = read(fd, to + n, max - n);
	if (fd >= 0)
		close(fd);
	return n;
}

static const char *find(const char *name)
{
	size_t length = strlen(name);
	for (const char *e = borrowed; e && *e; e += strlen(e) + 1)
		if (strncmp(e, name, length) == 0 && e[length] == '=')
			return e + length + 1;
	return NULL;
}

static bool borrow_of(int pid)
{
	char path[32];
	snprintf(path, sizeof path, "/proc/%d/environ", pid);
	size_t n = read_file(path, borrowed, ENVIRON_MAX - 2);
	borrowed[n] = borrowed[n + 1] = 0;
	return find("MEMTRACE_STANDIN_DIR") != NULL;
}

static bool borrow_from(const char *folder)
{
	DIR *entries = folder[0] == '/' ? opendir(folder) : NULL;
	bool found = false;
	int pid, incarnation;
	for (struct dirent *e; entries && !found && (e = readdir(entries));)
		if (sscanf(e->d_name, "%d-%d.info", &pid, &incarnation) == 2)
			found = borrow_of(pid);
	if (entries)
		closedir(entries);
	return found;
}

static void borrow(void)
{
	static char arguments[8192];
	if (getenv("MEMTRACE_STANDIN_DIR"))
		return;
	borrowed = sd_map(NULL, ENVIRON_MAX, MAP_NORESERVE);
	if (borrowed == MAP_FAILED)
		abort();
	size_t n = read_file("/proc/self/cmdline", arguments, sizeof arguments - 1);
	for (char *a = arguments; a < arguments + n; a += strlen(a) + 1)
		if (borrow_from(a))
			return;
	borrowed[0] = 0;
}

static const char *setting(const char *name)
{
	const char *own = getenv(name);
	return own ? own : find(name);
}

/* "2G", "1.5G", "65536" */
static uint64_t parse_bytes(const char *text, char **end)
{
	double n = strtod(text, end);
	int shift = 0;
	switch (**end) {
	case 'T': shift = 40; break;
	case 'G': shift = 30; break;
	case 'M': shift = 20; break;
	case 'K': shift = 10; break;
	}
	if (shift)
		++*end;
	return (uint64_t)(n * (double)(1ull << shift));
}

static uint64_t bytes_option(const char *name, uint64_t otherwise)
{
	const char *text = setting(name);
	char *end;
	return text && *text ? parse_bytes(text, &end) : otherwise;
}

static void read_sizes(void)
{
	const char *text = setting("MEMTRACE_STANDIN_DEVICES");
	char *end = (char *)(text && *text ? text : "2G,2G");
	while (*end && sd.count < SD_DEVICES) {
		sd.size[sd.count++] = parse_bytes(end, &end);
		if (*end != ',')
			break;
		end++;
	}
}

/* ---- the file ---- */

static void init_lock(struct shared *shared)
{
	pthread_mutexattr_t attributes;
	pthread_mutexattr_init(&attributes);
	pthread_mutexattr_setpshared(&attributes, PTHREAD_PROCESS_SHARED);
	pthread_mutexattr_setrobust(&attributes, PTHREAD_MUTEX_ROBUST);
	pthread_mutex_init(&shared->lock, &attributes);
	shared->magic = MAGIC;
}

static void *map_file(int fd)
{
	struct stat status;
	flock(fd, LOCK_EX);
	if (fstat(fd, &status) != 0 || (status.st_size < (off_t)sizeof(struct shared) && ftruncate(fd, sizeof(struct shared)) != 0))
		return MAP_FAILED;
	void *start = (void *)syscall(SYS_mmap, NULL, sizeof(struct shared), PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	if (start != MAP_FAILED && ((struct shared *)start)->magic != MAGIC)
		init_lock(start);
	flock(fd, LOCK_UN); /* closing it wouldn't do: the mapping keeps the open file, and its lock, alive */
	return start;
}

static void open_file(void)
{
	char path[4096];
	const char *folder = setting("MEMTRACE_STANDIN_DIR");
	if (folder && *folder)
		snprintf(path, sizeof path - 16, "%s", folder);
	else
		snprintf(path, sizeof path - 16, "/tmp/memtrace-standin-%d", (int)getuid());
	mkdir(path, 0777);
	strcat(path, "/devices");
	int fd = open(path, O_RDWR | O_CREAT | O_CLOEXEC, 0666);
	void *start = fd < 0 ? MAP_FAILED : map_file(fd);
	if (fd >= 0)
		close(fd);
	if (start == MAP_FAILED) { /* nobody to share with, but it works */
		fprintf(stderr, "stand-in: %s: %s\n", path, strerror(errno));
		start = sd_map(NULL, sizeof(struct shared), 0);
		if (start == MAP_FAILED)
			abort();
		init_lock(start);
	}
	sd.shared = start;
}

static void open_log(void)
{
	const char *path = setting("MEMTRACE_STANDIN_LOG");
	sd.log = -1;
	if (!path || !*path)
		return;
	int fd = open(path, O_WRONLY | O_APPEND | O_CREAT | O_CLOEXEC, 0666);
	sd.log = fd < 0 ? -1 : fcntl(fd, F_DUPFD_CLOEXEC, 200); /* out of the way of programs that count on low numbers */
	if (fd >= 0)
		close(fd);
}

static void start(void)
{
	borrow();
	read_sizes();
	sd.context = bytes_option("MEMTRACE_STANDIN_CONTEXT", 64 << 20);
	sd.granularity = bytes_option("MEMTRACE_STANDIN_GRANULARITY", 2 << 20);
	if (!sd.granularity)
		sd.granularity = 1;
	sd.pid_shift = (int)bytes_option("MEMTRACE_STANDIN_PID_SHIFT", 0);
	sd.late = (unsigned)bytes_option("MEMTRACE_STANDIN_LATE", 0);
	sd.serial = (unsigned)bytes_option("MEMTRACE_STANDIN_SERIAL", 0);
	open_log();
	open_file();
}

int sd_count(void)
{
	pthread_once(&once, start);
	return sd.count;
}

uint64_t sd_size(int device)
{
	return device >= 0 && device < sd_count() ? sd.size[device] : 0;
}

uint64_t sd_context(void)
{
	sd_count();
	return sd.context;
}

uint64_t sd_granularity(void)
{
	sd_count();
	return sd.granularity;
}

int sd_pid_shift(void)
{
	sd_count();
	return sd.pid_shift;
}

unsigned sd_late(void)
{
	sd_count();
	return sd.late;
}

void sd_uuid(int device, uint8_t uuid[16])
{
	sd_count();
	memcpy(uuid, "mt-stand-in", 11);
	for (int i = 0; i < 4; i++)
		uuid[11 + i] = (uint8_t)(sd.serial >> (24 - 8 * i));
	uuid[15] = (uint8_t)device;
}

void sd_uuid_text(int device, char text[SD_UUID_TEXT])
{
	uint8_t u[16];
	sd_uuid(device, u);
	snprintf(text, SD_UUID_TEXT, "GPU-%02x%02x%02x%02x-%02x%02x-%02x%02x-%02x%02x-%02x%02x%02x%02x%02x%02x", u[0], u[1], u[2], u[3],
		 u[4], u[5], u[6], u[7], u[8], u[9], u[10], u[11], u[12], u[13], u[14], u[15]);
}

/* ---- who uses what ---- */

/* Ticks since boot at which a process began, 0 if there is none (or only what waits to be reaped). */
static uint64_t process_start(int pid)
{
	char path[32], text[1024];
	snprintf(path, sizeof path, "/proc/%d/stat", pid);
	int fd = open(path, O_RDONLY | O_CLOEXEC);
	ssize_t n = fd < 0 ? 0 : read(fd, text, sizeof text - 1);
	if (fd >= 0)
		close(fd);
	if (n <= 0)
		return 0;
	text[n] = 0;
	char *at = strrchr(text, ')'), state;
	unsigned long long begin = 0;
	if (!at || sscanf(at + 1, " %c %*d %*d %*d %*d %*d %*u %*u %*u %*u %*u %*u %*u %*d %*d %*d %*d %*d %*d %llu", &state, &begin) != 2)
		return 0;
	return state == 'Z' || state == 'X' ? 0 : begin;
}

static void lock(void)
{
	if (pthread_mutex_lock(&sd.shared->lock) == EOWNERDEAD)
		pthread_mutex_consistent(&sd.shared->lock); /* whatever the dead one wrote, its entry is void */
}

static void unlock(void)
{
	pthread_mutex_unlock(&sd.shared->lock);
}

static void bury_the_dead(void)
{
	int self = getpid();
	for (struct entry *e = sd.shared->entries; e < sd.shared->entries + ENTRIES; e++)
		if (e->pid && e->pid != self && process_start(e->pid) != e->start)
			memset(e, 0, sizeof *e);
}

static struct entry *own_entry(void)
{
	int pid = getpid();
	if (sd.own && sd.own->pid == pid)
		return sd.own;
	for (struct entry *e = sd.shared->entries; e < sd.shared->entries + ENTRIES; e++)
		if (!e->pid || e->pid == pid) {
			memset(e, 0, sizeof *e);
			e->pid = pid;
			e->start = process_start(pid);
			return sd.own = e;
		}
	return NULL;
}

static uint64_t used(int device)
{
	uint64_t sum = 0;
	for (struct entry *e = sd.shared->entries; e < sd.shared->entries + ENTRIES; e++)
		sum += e->pid ? e->bytes[device] : 0;
	return sum;
}

static bool fits(const struct entry *own, int device, uint64_t total)
{
	return total <= own->bytes[device] || used(device) - own->bytes[device] + total <= sd.size[device];
}

bool sd_charge(int device, uint64_t total)
{
	sd_count();
	lock();
	struct entry *own = own_entry();
	bool good = own && fits(own, device, total);
	if (!good) {
		bury_the_dead();
		own = own_entry();
		good = own && fits(own, device, total);
	}
	if (good)
		own->bytes[device] = total;
	unlock();
	return good;
}

uint64_t sd_used(int device)
{
	sd_count();
	lock();
	bury_the_dead();
	uint64_t sum = used(device);
	unlock();
	return sum;
}

int sd_users(int device, struct sd_user *users, int max)
{
	int n = 0;
	sd_count();
	lock();
	bury_the_dead();
	for (struct entry *e = sd.shared->entries; e < sd.shared->entries + ENTRIES; e++)
		if (e->pid && e->bytes[device]) {
			if (n < max)
				users[n] = (struct sd_user){e->pid + sd.pid_shift, e->bytes[device]};
			n++;
		}
	unlock();
	return n;
}

void sd_leave(void)
{
	if (!sd.shared || !sd.own)
		return;
	lock();
	if (sd.own->pid == getpid())
		memset(sd.own, 0, sizeof *sd.own);
	sd.own = NULL;
	unlock();
}

/* ---- the log ---- */

static void log_free(int device, uint64_t *charged, uint64_t *left)
{
	*charged = *left = 0;
	if (device < 0 || device >= sd.count)
		return;
	lock();
	uint64_t sum = used(device);
	*charged = sd.own ? sd.own->bytes[device] : 0;
	unlock();
	*left = sum < sd.size[device] ? sd.size[device] - sum : 0;
}

void sd_log(const struct sd_event *e)
{
	if (sd_count() < 0 || sd.log < 0)
		return;
	char line[512];
	struct timespec now;
	uint64_t charged, left;
	clock_gettime(CLOCK_MONOTONIC, &now);
	log_free(e->device, &charged, &left);
	int n = snprintf(line, sizeof line,
			 "{\"ns\": %lld, \"pid\": %d, \"tid\": %ld, \"op\": \"%s\", \"function\": \"%s\", \"kind\": \"%s\", \"device\": %d, "
			 "\"address\": %llu, \"bytes\": %llu, \"handle\": %llu, \"status\": %d, \"charged\": %llu, \"free\": %llu}\n",
			 now.tv_sec * 1000000000ll + now.tv_nsec, getpid(), syscall(SYS_gettid), e->op, e->function, e->kind, e->device,
			 (unsigned long long)e->address, (unsigned long long)e->bytes, (unsigned long long)e->handle, e->status,
			 (unsigned long long)charged, (unsigned long long)left);
	if (write(sd.log, line, (size_t)n) != n)
		sd.log = -1;
}

/* ---- memory ---- */

void *sd_map(void *hint, uint64_t bytes, int flags)
{
	return (void *)syscall(SYS_mmap, hint, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | flags, -1, 0);
}

void sd_unmap(void *first, uint64_t bytes)
{
	syscall(SYS_munmap, first, bytes);
}
