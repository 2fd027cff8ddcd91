/* PID-N.trace as the recorder writes it: whole blocks are appended, or nothing is. */
#ifndef MT_RECORDER_TRACE_WRITER_H
#define MT_RECORDER_TRACE_WRITER_H

#include <stdbool.h>
#include <stdint.h>

#include "format/codec.h"

struct record_trace {
	int fd;       /* -1 = not open */
	uint64_t end; /* where the next block goes */
	char path[4400];
	bool complete; /* MT_BLOCK_END is there */
	uint64_t last_ticks;
};

/* What a trace that is already there says; called for each of its blocks. `covers`: header->covers of them. */
typedef int trace_writer_seen(void *context, const struct mt_block *header, const struct mt_cover *covers);

/* Opens dir/name.trace or makes it. Of an earlier recorder's file all whole blocks are shown to `seen`, and what it
 * left unfinished at the end is cut off. */
int trace_writer_open(struct record_trace *t, const char *dir, const char *name, uint32_t pid, uint32_t image,
		      trace_writer_seen *seen, void *context);
void trace_writer_close(struct record_trace *t);

/* Gives up the descriptor for a while, and nothing else; `end` stays, and tells a suspended one from a closed one. */
void trace_writer_suspend(struct record_trace *t);
int trace_writer_resume(struct record_trace *t);

/* Appends one block; on error the file is as it was. */
int trace_writer_append(struct record_trace *t, const struct codec_buf *block);

#endif
