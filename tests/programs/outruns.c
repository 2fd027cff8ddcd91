/* outruns MODE STEPS KEPT [BYTES]: in each step 1,000 blocks of any size are replaced and KEPT blocks of BYTES (4,000) are kept. A system call filter
 * keeps the ring from growing, the recorder is stopped in the step until so many events are lost, and the program then waits for it:
 *
 *   often    3,000 in each step     seldom   20 in each step     early    3,000 before them     never
 *   late     as it ends, while it frees all that KEPT made
 *
 * Prints the bytes and blocks that are alive at the end, and how many of them KEPT made. */
#include "memtrace.h"
#include "pacing.h"
#include "test.h"

#include <linux/filter.h>
#include <linux/seccomp.h>
#include <signal.h>
#include <sys/prctl.h>

enum { TABLE = 1000, LARGEST = 40000 };

static char *table[TABLE];
static size_t sizes[TABLE];
static size_t each = 4000;
static unsigned long seed = 88172645463325252ul;

static unsigned long random_number(void)
{
	seed ^= seed << 13;
	seed ^= seed >> 7;
	seed ^= seed << 17;
	return seed;
}

static uint64_t lost(void)
{
	struct mt_info head;
	return syscall(SYS_pread64, info, &head, sizeof(head), 0L) == sizeof(head) ? head.lost_events : 0;
}

__attribute__((noinline)) static void replace(unsigned n)
{
	while (n--) {
		unsigned k = random_number() % TABLE;
		free(table[k]);
		sizes[k] = 1 + random_number() % LARGEST;
		table[k] = opaque(malloc(sizes[k]));
	}
}

/* Each points to the one before. */
static void **kept_last;

__attribute__((noinline)) static void keep(unsigned n)
{
	while (n--) {
		void **block = opaque(malloc(each));
		CHECK(block);
		*block = kept_last;
		kept_last = block;
	}
}

static void free_kept(void)
{
	for (void **next; kept_last; kept_last = next) {
		next = *kept_last;
		free(kept_last);
	}
}

static pid_t recorder(void)
{
	struct mt_session s;
	for (int i = 0; i < 20000; i++, usleep(1000))
		if (syscall(SYS_pread64, session, &s, sizeof(s), 0L) == sizeof(s) && s.recorder_pid)
			return (pid_t)s.recorder_pid;
	say("no recorder came\n");
	_exit(3);
}

static int free_chunks(void)
{
	unsigned char states[1024] = { 0 };
	struct mt_info head;
	int found = 0;
	if (syscall(SYS_pread64, info, &head, sizeof(head), 0L) != sizeof(head) || head.chunks > sizeof(states) ||
	    syscall(SYS_pread64, info, states, sizeof(states), (long)MT_INFO_STATES) != sizeof(states))
		_exit(4);
	for (uint32_t i = 0; i < head.chunks; i++)
		found += states[i] == MT_CHUNK_FREE;
	return found;
}

static void wait_for_the_recorder(void)
{
	for (int i = 0; i < 20000 && free_chunks() < 4; i++)
		usleep(1000);
}

/* The last of the events that are lost is followed by one that is not: a ring asks for a chunk every 20 ms. */
static void lose(uint64_t events)
{
	pid_t pid = recorder();
	uint64_t before = lost();
	kill(pid, SIGSTOP);
	while (lost() - before < events)
		replace(10);
	kill(pid, SIGCONT);
	wait_for_the_recorder();
	usleep(25000);
	replace(1);
}

static void fix_the_ring(void)
{
	struct sock_filter allow = BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW);
	CHECK(!prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0));
	CHECK(!prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &(struct sock_fprog){ 1, &allow }));
}

int main(int argc, char **argv)
{
	if (argc < 4)
		return 2;
	unsigned steps = atoi(argv[2]), kept = atoi(argv[3]);
	each = argc > 4 ? (size_t)atoi(argv[4]) : each;
	uint64_t bytes = (uint64_t)steps * kept * each;
	const char *mode = argv[1];
	pace(1, 1);
	const int late = info >= 0 && !strcmp(mode, "late");
	fix_the_ring();
	replace(4 * TABLE);
	if (info >= 0 && !strcmp(mode, "early"))
		lose(3000);
	for (unsigned i = 0; i < steps; i++) {
		memtrace_step(i);
		replace(TABLE);
		keep(kept);
		if (info >= 0 && (!strcmp(mode, "often") || !strcmp(mode, "seldom")))
			lose(!strcmp(mode, "seldom") ? 20 : 3000);
		if (late)
			wait_for_the_recorder();
	}
	if (late) {
		pid_t pid = recorder();
		kill(pid, SIGSTOP);
		free_kept();
		kill(pid, SIGCONT);
		kept = 0;
		bytes = 0;
	}
	for (unsigned k = 0; k < TABLE; k++)
		bytes += table[k] ? sizes[k] : 0;
	say("%lu %u %lu\n", (unsigned long)bytes, TABLE + steps * kept, (unsigned long)steps * kept * each);
	return 0;
}
