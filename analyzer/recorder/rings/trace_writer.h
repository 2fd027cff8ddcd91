/* PID-N.trace as the recorder writes it: a block is appended whole, or not at all. Functions that return int: 0 or a
 * negative -MT_E*. */
#ifndef MT_RECORDER_RINGS_TRACE_WRITER_H
#define MT_RECORDER_RINGS_TRACE_WRITER_H

#include <stdbool.h>
#include <stdint.h>

#include "format/codec.h"

struct record_trace {
	int fd;           /* -1 = not open */
	uint64_t end;     /* offset of the next block */
	uint64_t charged; /* bytes of it that count into the session's use of disk: recorder_charge() */
	char path[4400];
	bool complete;       /* MT_BLOCK_END is there: nothing is appended any more */
	uint64_t last_ticks; /* of the last block */
};

/* Called for each block of a trace that is there already. `covers` has header->covers entries. Not 0 = an error, which
 * trace_writer_open() returns. */
typedef int trace_writer_seen(void *context, const struct mt_block *header, const struct mt_cover *covers);

/* Opens dir/name.trace, or makes it. In an earlier recorder's file `seen` is called for all whole blocks, and an
 * unfinished one at the end is cut off. */
int trace_writer_open(struct record_trace *t, const char *dir, const char *name, uint32_t pid, uint32_t image,
		      trace_writer_seen *seen, void *context);
void trace_writer_close(struct record_trace *t);

/* Suspending closes the descriptor and keeps all else; `end` is 0 only after trace_writer_close(). Resuming opens the
 * file again. */
void trace_writer_suspend(struct record_trace *t);
int trace_writer_resume(struct record_trace *t);

/* Appends one block; on error the file is as it was. */
int trace_writer_append(struct record_trace *t, const struct codec_buf *block);

#endif
