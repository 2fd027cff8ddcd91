/* Blocks come back as they went in, whatever is in them; damaged ones are refused or decode to something, but
 * never crash: run under AddressSanitizer. */
#include <zlib.h>

#include "format/codec.h"
#include "tests/unit/random.h"
#include "tests/unit/test.h"

static uint64_t random_state = 88172645463325252u;

static uint64_t random64(void)
{
	return random_next(&random_state);
}

/* Any width, so that small and huge values are equally likely. */
static uint64_t random_width(void)
{
	return random64() >> random64() % 64;
}

struct stream {
	uint32_t slots;
	struct mt_event *events;
	uint32_t *rings;
};

static struct stream stream_new(uint32_t slots)
{
	struct stream s = { .slots = slots,
			    .events = calloc(slots, sizeof(*s.events)),
			    .rings = calloc(slots, sizeof(*s.rings)) };
	return s;
}

static void stream_free(struct stream *s)
{
	free(s->events);
	free(s->rings);
}

/* Nothing in it makes sense. */
static void fill_adversarial(struct stream *s)
{
	for (uint32_t i = 0; i < s->slots; i++) {
		s->events[i] = (struct mt_event){ .ticks = random_width(),
						  .addr = random_width(),
						  .size = random_width() & MT_MAX_SIZE,
						  .hook = random64() & 1023,
						  .kind = random64() % 3 ? random64() % 10 : random64() & 63,
						  .node = (uint32_t)random_width(),
						  .node2 = (uint32_t)random_width() };
		s->rings[i] = (uint32_t)random_width() % MT_MAX_CHUNKS;
	}
}

/* Blocks of a heap that reuses addresses as malloc does, in a few rings, with mappings among them. */
static void fill_plausible(struct stream *s)
{
	enum { LIVE = 256 };
	uint64_t live[LIVE] = { 0 }, top = 0x555500001010, ticks = 1000000, freed = 0;
	for (uint32_t i = 0; i < s->slots; i++) {
		uint64_t *slot = &live[random64() % LIVE];
		struct mt_event *e = &s->events[i];
		s->rings[i] = (uint32_t)(random64() % 8 ? i / 64 % 3 : random64() % 3);
		*e = (struct mt_event){ .ticks = ticks += random64() % 500, .hook = 1 };
		if (i + 1 < s->slots && random64() % 50 == 0) {
			struct mt_ext_map map = { .offset = random_width(),
						  .prot = 3,
						  .flags = MT_MAP_ANON,
						  .kind_ext = MT_EXT << 26,
						  .file = 2 };
			*e = (struct mt_event){ .ticks = ticks,
						.addr = random64() << 12,
						.size = 4096,
						.hook = 3,
						.kind = MT_MAP,
						.node = 7 };
			memcpy(&s->events[i + 1], &map, sizeof(map));
			s->rings[i + 1] = s->rings[i];
			i++;
		} else if (*slot) {
			e->kind = MT_FREE;
			e->addr = freed = *slot;
			*slot = 0;
		} else {
			e->kind = MT_ALLOC;
			e->size = random64() % 2000;
			e->node = (uint32_t)(random64() % 1000);
			e->node2 = (uint32_t)(random64() % 4);
			e->addr = *slot = freed && random64() % 2 ? freed : (top += 32);
			freed = 0;
		}
	}
}

static void quantise(struct stream *s, unsigned shift)
{
	uint64_t last = 0;
	for (uint32_t i = 0; i < s->slots; i++) {
		struct mt_event *e = &s->events[i];
		if (e->kind == MT_EXT)
			continue;
		if (e->ticks < last)
			e->ticks = last;
		e->ticks = e->ticks >> shift << shift;
		last = e->ticks;
	}
}

static int decode(struct codec *codec, const struct codec_buf *block, struct stream *out)
{
	struct mt_block header;
	size_t bytes;
	int error = codec_check(block->data, block->size, &header, &bytes);
	if (error)
		return error;
	*out = stream_new((uint32_t)header.count + !header.count);
	return codec_decode_events(codec, block->data, bytes, out->events, out->rings);
}

static void check_round_trip(struct codec *codec, struct stream *s, unsigned shift)
{
	struct codec_buf block = { 0 };
	struct stream back = { 0 };
	struct mt_cover covers[2] = { { .ring = 1, .from = 5, .to = 9 }, { .ring = 2, .from = 0, .to = 1 } };
	CHECK_EQ(codec_encode_events(codec, s->events, s->rings, s->slots, covers, 2, shift, &block), 0);
	CHECK_EQ(decode(codec, &block, &back), 0);
	quantise(s, shift);
	if (back.events) {
		CHECK(!memcmp(back.events, s->events, s->slots * sizeof(*s->events)));
		CHECK(!memcmp(back.rings, s->rings, s->slots * sizeof(*s->rings)));
		CHECK(!memcmp(block.data + sizeof(struct mt_block), covers, sizeof(covers)));
	}
	stream_free(&back);
	codec_buf_fini(&block);
}

TEST(codec_plausible)
{
	struct codec *codec = codec_new();
	for (unsigned slots = 1; slots <= 200000; slots = slots * 3 + 1) {
		struct stream s = stream_new(slots);
		fill_plausible(&s);
		check_round_trip(codec, &s, slots % 10);
		stream_free(&s);
	}
	codec_free(codec);
}

TEST(codec_adversarial)
{
	struct codec *codec = codec_new();
	for (unsigned round = 0; round < 200; round++) {
		struct stream s = stream_new((uint32_t)(random64() % 3000) + 1);
		fill_adversarial(&s);
		check_round_trip(codec, &s, round % 64);
		stream_free(&s);
	}
	codec_free(codec);
}

TEST(codec_refuses_what_it_cannot_encode)
{
	struct codec *codec = codec_new();
	struct codec_buf block = { 0 };
	struct mt_event event = { 0 };
	uint32_t ring = 0;
	CHECK_EQ(codec_encode_events(codec, &event, &ring, 0, NULL, 0, 0, &block), -CODEC_EARG);
	CHECK_EQ(codec_encode_events(codec, &event, &ring, CODEC_MAX_SLOTS + 1, NULL, 0, 0, &block), -CODEC_EARG);
	CHECK_EQ(codec_encode_events(codec, &event, &ring, 1, NULL, 0, 64, &block), -CODEC_EARG);
	codec_buf_fini(&block);
	codec_free(codec);
}

static struct codec_buf small_block(struct codec *codec)
{
	struct codec_buf block = { 0 };
	struct stream s = stream_new(300);
	fill_plausible(&s);
	CHECK_EQ(codec_encode_events(codec, s.events, s.rings, s.slots, NULL, 0, 0, &block), 0);
	stream_free(&s);
	return block;
}

TEST(codec_cut)
{
	struct codec *codec = codec_new();
	struct codec_buf block = small_block(codec);
	size_t whole = block.size;
	for (block.size = 0; block.size < whole; block.size++) {
		struct codec_buf copy = { .data = malloc(block.size + !block.size), .size = block.size };
		struct stream back = { 0 };
		memcpy(copy.data, block.data, copy.size);
		CHECK(decode(codec, &copy, &back) < 0);
		stream_free(&back);
		codec_buf_fini(&copy);
	}
	codec_buf_fini(&block);
	codec_free(codec);
}

/* A wrong checksum is noticed; with the right one, damage may decode to anything, but safely. */
static void check_damage(struct codec *codec, struct codec_buf *block)
{
	struct stream back = { 0 };
	struct mt_block *header = (struct mt_block *)block->data;
	CHECK(decode(codec, block, &back) < 0);
	stream_free(&back);
	uint32_t crc = header->crc;
	header->crc = 0;
	header->crc = (uint32_t)crc32(0, block->data, (uInt)block->size);
	back = (struct stream){ 0 };
	decode(codec, block, &back);
	stream_free(&back);
	header->crc = crc;
}

TEST(codec_every_byte_flipped)
{
	struct codec *codec = codec_new();
	struct codec_buf block = small_block(codec);
	for (size_t i = 0; i < block.size; i++)
		for (unsigned k = 0; k < 3; k++) {
			uint8_t old = block.data[i], bits = (uint8_t[]){ 1, 0x80, 0xff }[k];
			block.data[i] ^= bits;
			check_damage(codec, &block);
			block.data[i] = old;
		}
	codec_buf_fini(&block);
	codec_free(codec);
}

/* Columns that do not fit what the header says. */
TEST(codec_wrong_header)
{
	struct codec *codec = codec_new();
	for (unsigned round = 0; round < 300; round++) {
		struct codec_buf block = small_block(codec);
		struct mt_block *header = (struct mt_block *)block.data;
		header->count = random64() % 400;
		header->shift = random64() % 64;
		header->first_ticks = random_width();
		check_damage(codec, &block);
		codec_buf_fini(&block);
	}
	codec_free(codec);
}

static void check_nodes(struct codec *codec, const struct mt_node *nodes, uint32_t count, uint32_t base)
{
	struct codec_buf block = { 0 };
	struct mt_block header;
	size_t bytes;
	struct mt_node *back = calloc(count + 1ul, sizeof(*back));
	CHECK_EQ(codec_encode_nodes(codec, nodes, count, base, &block), 0);
	CHECK_EQ(codec_check(block.data, block.size, &header, &bytes), 0);
	CHECK_EQ(header.count, count);
	CHECK_EQ(header.first_ticks, base);
	CHECK_EQ(codec_decode_nodes(codec, block.data, bytes, back), 0);
	CHECK(!memcmp(back, nodes, count * sizeof(*nodes)));
	if (count < 400)
		for (size_t i = 0; i < block.size; i++) {
			block.data[i] ^= 0xff;
			struct mt_block *damaged = (struct mt_block *)block.data;
			damaged->crc = 0;
			damaged->crc = (uint32_t)crc32(0, block.data, (uInt)block.size);
			if (!codec_check(block.data, block.size, &header, &bytes) && header.count <= count)
				codec_decode_nodes(codec, block.data, bytes, back);
			block.data[i] ^= 0xff;
		}
	free(back);
	codec_buf_fini(&block);
}

TEST(codec_nodes)
{
	struct codec *codec = codec_new();
	enum { COUNT = 100000 };
	struct mt_node *nodes = calloc(COUNT, sizeof(*nodes));
	for (uint32_t i = 1; i < COUNT; i++)
		nodes[i] = (struct mt_node){ .pc = 0x7f0000000000 + random64() % 9000 * 4,
					     .flags = random64() % 50 == 0,
					     .parent = (uint32_t)(random64() % 3 ? i - 1 : random64() % i) };
	check_nodes(codec, nodes, COUNT, 0);
	check_nodes(codec, nodes, 1, 0);
	check_nodes(codec, nodes, 0, 65536);
	check_nodes(codec, nodes, 300, 65536);
	for (uint32_t i = 0; i < COUNT; i++)
		nodes[i] = (struct mt_node){ .pc = random_width(),
					     .flags = (uint32_t)random_width(),
					     .parent = (uint32_t)random_width() };
	check_nodes(codec, nodes, COUNT, 0);
	free(nodes);
	codec_free(codec);
}

TEST(codec_info)
{
	struct codec *codec = codec_new();
	struct codec_buf block = { 0 };
	struct mt_info info = { .magic = MT_INFO_MAGIC, .pid = 42 };
	struct mt_block header;
	size_t bytes;
	char log[5000] = "log", back[sizeof(info) + sizeof(log)];
	info.log_bytes = sizeof(log);
	CHECK_EQ(codec_encode_info(codec, &info, log, sizeof(log), &block), 0);
	CHECK_EQ(codec_check(block.data, block.size, &header, &bytes), 0);
	CHECK_EQ(header.count, sizeof(back));
	CHECK_EQ(codec_decode_info(codec, block.data, bytes, back), 0);
	CHECK(!memcmp(back, &info, sizeof(info)));
	CHECK(!memcmp(back + sizeof(info), log, sizeof(log)));
	CHECK_EQ(codec_encode_end(&block), 0);
	CHECK_EQ(codec_check(block.data, block.size, &header, &bytes), 0);
	CHECK_EQ(header.type, MT_BLOCK_END);
	codec_buf_fini(&block);
	codec_free(codec);
}

TEST_MAIN
