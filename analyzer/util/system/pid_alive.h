/* Whether a recorded process still runs. */
#ifndef MT_UTIL_SYSTEM_PID_ALIVE_H
#define MT_UTIL_SYSTEM_PID_ALIVE_H

#include <stdbool.h>
#include <stdint.h>

enum alive {
	ALIVE_NO = 0,
	ALIVE_YES,
	ALIVE_UNKNOWN, /* it belongs to a pid namespace that can't be seen from here */
};

/* Process `pid`, as numbered in the pid namespace whose inode is `ns`, that started at `start` (field 22 of
 * /proc/PID/stat; 0 = unknown). A reused pid and a zombie are not alive; a process whose first thread alone has ended
 * is. */
enum alive pid_alive(uint32_t pid, uint64_t ns, uint64_t start);

/* When it started, as above; 0 if that can't be told. */
uint64_t pid_start_time(uint32_t pid, uint64_t ns);

/* Whether the process started after that moment of CLOCK_MONOTONIC (ns). Then it is another one than the process that
 * was recorded at that moment. If the machine slept meanwhile the answer may be no in error, never yes. */
bool pid_started_after(uint32_t pid, uint64_t ns, uint64_t mono_ns);

/* The process's number in our own /proc, or 0 if it can't be found there. */
uint32_t pid_in_own_proc(uint32_t pid, uint64_t ns, uint64_t start);

/* Are we in the machine's first pid namespace, and /proc is its? */
bool pid_sees_whole_machine(void);

#endif
