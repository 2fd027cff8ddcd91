/*
 * Writes messages of Protocol Buffers field by field (protobuf.dev/programming-guides/encoding). A message within a
 * message is built in a buffer of its own, which is then added to the outer one.
 *
 *   struct protobuf line = { 0 }, outer = { 0 };
 *   protobuf_uint(&line, 1, 17);
 *   protobuf_message(&outer, 4, &line);            empties `line`, which can be used again
 *   ... outer.data, outer.size ... protobuf_fini(&outer); protobuf_fini(&line);
 *
 * If there is no memory, `failed` is set in the buffer and stays; look at it once, before the data is written out.
 */
#ifndef MT_REPORT_EXPORT_PROTOBUF_H
#define MT_REPORT_EXPORT_PROTOBUF_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct protobuf {
	unsigned char *data;
	size_t size, room;
	bool failed;
};

void protobuf_uint(struct protobuf *p, unsigned field, uint64_t n); /* uint64, uint32, bool, enum */
void protobuf_int(struct protobuf *p, unsigned field, int64_t n);   /* int64, int32 */
void protobuf_double(struct protobuf *p, unsigned field, double n);
void protobuf_bytes(struct protobuf *p, unsigned field, const void *data, size_t size);
void protobuf_text(struct protobuf *p, unsigned field, const char *text);
void protobuf_packed(struct protobuf *p, unsigned field, const uint64_t *n, size_t count);
void protobuf_message(struct protobuf *p, unsigned field, struct protobuf *inner);
void protobuf_fini(struct protobuf *p);

#endif
