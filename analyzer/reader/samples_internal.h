/* What samples.c and its parts share: samples_file.c reads one DIR/samples, samples_time.c makes passes over all of
 * them. Nobody else includes this. */
#ifndef MT_READER_SAMPLES_INTERNAL_H
#define MT_READER_SAMPLES_INTERNAL_H

#include "analyzer/reader/files/file.h"
#include "analyzer/reader/reader_internal.h"
#include "analyzer/reader/samples.h"
#include "format/varint.h"

#include <uthash.h>
#include <zstd.h>

/* The fields of each kind of subject, as format/samples.h lists them. */
struct sample_field {
	const char *name;
	uint64_t unit; /* bytes or nanoseconds in one of the file's; 1 for counts */
};
struct sample_kind {
	const struct sample_field *field;
	unsigned count;
};
extern const struct sample_kind sample_kinds[MT_SUBJECTS];

/* A block of DIR/samples. */
struct block_place {
	uint64_t offset;
	uint32_t part;    /* as in struct mt_samples_block */
	uint64_t last_ns; /* its last sample, in time of the merged trace */
};

/* One DIR/samples. */
struct samples_source {
	struct file file;
	const struct reader_host *host;
	const struct clock *clock;
	struct block_place *blocks;
	size_t count, room;
	uint64_t next; /* blocks behind it are not indexed yet */
	/* of the block that was not full yet, which is then the last one of `blocks`; plain_bytes 0 = none */
	struct mt_samples_open open;
	uint8_t *open_plain;
	/* samples up to then have been counted into the subjects' extremes; 0 = none has */
	uint64_t noted_ns;
	struct cursor *scan; /* where the pass that makes subjects has come to */
	const struct session *session;
};

/* A subject, and the key by which it is found. All directories of one host share their subjects. */
struct entry {
	struct sample_subject subject;
	uint64_t start;     /* PROCESS, MAPPING: boot_start */
	char *key;          /* host, kind and what else tells subjects of a kind apart, as a string */
	char *text, *text2; /* of the subject */
	UT_hash_handle hh;
};

struct samples {
	struct reader *reader;
	struct samples_source *sources;
	size_t source_count;
	struct entry **entries;
	size_t count, room;
	struct entry *by_key;
};

/* A subject under its number in one block: `raw` has its latest values there, in units of the file. */
struct local {
	struct entry *entry;
	uint64_t raw[MT_SAMPLES_MAX_FIELDS];
};

/* Where a pass stands in one file. */
struct cursor {
	struct samples *samples;
	const struct samples_source *source;
	size_t next_block;
	bool make;       /* subjects that are new are made; else they must be there */
	uint64_t offset; /* of the block */
	ZSTD_DCtx *zstd;
	uint32_t part;  /* the block's that must come next; UINT32_MAX = only one that begins anew, with 0 */
	uint8_t *plain; /* the block, decompressed */
	struct varint_in in;
	uint64_t mono, last_mono;
	struct local *locals;
	size_t local_count, local_room;
	char *text; /* scratch: the two strings of a subject */
	/* the item it stands at; entry NULL = the end */
	struct entry *entry;
	uint64_t ns, fields;
	bool gone;
	const uint64_t *raw;
};

/* sample_subjects.c: the subject of that key. With `make` it is made if it is new. 0 or a negative -MT_E*. */
int samples_entry_of(struct samples *s, const struct reader_host *host, uint64_t kind, const uint64_t key[3],
		     const char *text, const char *text2, bool make, struct entry **out);

/* samples_file.c: indexes the blocks that are new. *cut says whether the file ends in the middle of one, which begins
 * at src->next. */
int samples_index(struct samples_source *src, bool *cut);

/* samples_file.c: adds the block that was not full yet, if there is one; takes it away again. */
int samples_add_open_block(struct samples_source *src);
void samples_remove_open_block(struct samples_source *src);

/* Moves on to the next sample, or the end of a subject; c->entry is NULL when there are no more. 0 or an error. */
int cursor_next(struct cursor *c);
void cursor_fini(struct cursor *c);

#endif
