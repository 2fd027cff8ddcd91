/* memtrace record DIR: the recorder process, started by the shim and by `memtrace run`. */
#include "analyzer/commands/commands.h"
#include "analyzer/recorder/recorder.h"
#include "analyzer/util/error.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static const struct option_row rows[] = { OPTIONS_END };

const struct option_spec cmd_record_spec = { "memtrace record DIR",
					     "The recorder, which is started by what it records and by memtrace run.",
					     rows,
					     OPTIONS_NO_DIRS,
					     NULL,
					     NULL };

/* Becomes `memtrace reduce`, whom nobody waits for. Where the trace goes on under another recorder that one does it
 * again. */
static void reduce_if_wanted(char *dir)
{
	const char *wanted = getenv("MEMTRACE_REDUCE");
	if (!wanted || strcmp(wanted, "1") != 0)
		return;
	nice(10);
	unsetenv("MEMTRACE_REDUCE");
	execl("/proc/self/exe", "memtrace", "reduce", "--quiet", dir, (char *)NULL);
}

int cmd_record(int argc, char **argv)
{
	if (argc != 2)
		return error_set(MT_EUSAGE, "record", ERROR_NO_OFFSET, "takes one trace directory");
	int e = record_run(argv[1]);
	if (e == 0)
		reduce_if_wanted(argv[1]);
	return e;
}
