/* memtrace record DIR: the recorder process, started by the shim and by `memtrace run`. */
#include "analyzer/commands/commands.h"
#include "analyzer/recorder/recorder.h"
#include "analyzer/util/error.h"

static const struct option_row rows[] = { OPTIONS_END };

const struct option_spec cmd_record_spec = { "memtrace record DIR",
					     "The recorder, which is started by what it records and by memtrace run.",
					     rows,
					     OPTIONS_NO_DIRS,
					     NULL,
					     NULL };

int cmd_record(int argc, char **argv)
{
	if (argc != 2)
		return error_set(MT_EUSAGE, "record", ERROR_NO_OFFSET, "takes one trace directory");
	return record_run(argv[1]);
}
