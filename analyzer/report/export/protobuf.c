#include "analyzer/report/export/protobuf.h"

#include "analyzer/util/vec.h"

enum wire { WIRE_VARINT = 0, WIRE_FIXED64 = 1, WIRE_BYTES = 2 };

static void put(struct protobuf *p, const void *data, size_t size)
{
	if (p->failed || vec_reserve_raw(p->data, p->room, p->size + size)) {
		p->failed = true;
		return;
	}
	if (size)
		memcpy(p->data + p->size, data, size);
	p->size += size;
}

static size_t encode(unsigned char out[10], uint64_t n)
{
	size_t size = 0;
	for (; n >= 0x80; n >>= 7)
		out[size++] = (unsigned char)(n | 0x80);
	out[size++] = (unsigned char)n;
	return size;
}

static void put_varint(struct protobuf *p, uint64_t n)
{
	unsigned char bytes[10];
	put(p, bytes, encode(bytes, n));
}

static void put_tag(struct protobuf *p, unsigned field, enum wire wire)
{
	put_varint(p, (uint64_t)field << 3 | wire);
}

void protobuf_uint(struct protobuf *p, unsigned field, uint64_t n)
{
	put_tag(p, field, WIRE_VARINT);
	put_varint(p, n);
}

void protobuf_int(struct protobuf *p, unsigned field, int64_t n)
{
	protobuf_uint(p, field, (uint64_t)n);
}

void protobuf_double(struct protobuf *p, unsigned field, double n)
{
	uint64_t bits;
	unsigned char bytes[8];
	memcpy(&bits, &n, sizeof(bits));
	for (unsigned i = 0; i < sizeof(bytes); i++)
		bytes[i] = (unsigned char)(bits >> 8 * i);
	put_tag(p, field, WIRE_FIXED64);
	put(p, bytes, sizeof(bytes));
}

void protobuf_bytes(struct protobuf *p, unsigned field, const void *data, size_t size)
{
	put_tag(p, field, WIRE_BYTES);
	put_varint(p, size);
	put(p, data, size);
}

void protobuf_text(struct protobuf *p, unsigned field, const char *text)
{
	protobuf_bytes(p, field, text, strlen(text));
}

void protobuf_packed(struct protobuf *p, unsigned field, const uint64_t *n, size_t count)
{
	unsigned char bytes[10];
	size_t size = 0;
	for (size_t i = 0; i < count; i++)
		size += encode(bytes, n[i]);
	put_tag(p, field, WIRE_BYTES);
	put_varint(p, size);
	for (size_t i = 0; i < count; i++)
		put_varint(p, n[i]);
}

void protobuf_message(struct protobuf *p, unsigned field, struct protobuf *inner)
{
	protobuf_bytes(p, field, inner->data, inner->size);
	p->failed = p->failed || inner->failed;
	inner->size = 0;
}

void protobuf_fini(struct protobuf *p)
{
	free(p->data);
	*p = (struct protobuf){ 0 };
}
