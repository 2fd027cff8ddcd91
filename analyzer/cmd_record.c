/* memtrace record DIR: the recorder process, started by the shim and by `memtrace run`. */
#include "analyzer/commands.h"
#include "analyzer/error.h"
#include "analyzer/record.h"

int cmd_record(int argc, char **argv)
{
	if (argc != 2)
		return error_set(MT_EUSAGE, "record", ERROR_NO_OFFSET, "takes one trace directory");
	return record_run(argv[1]);
}
