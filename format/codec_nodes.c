/* The block of a call tree: for each node how far back its parent is, and an index into a table of (pc, flags) in
 * order of appearance. A program has thirty times fewer of those than nodes, and chains of new nodes repeat. */
#include <stdlib.h>
#include <string.h>

#include "format/column.h"

enum {
	COLUMN_PARENT, /* a node: id - parent, modulo 2^32 */
	COLUMN_PC,     /* a node: index into the table; its present length = the next entry is new */
	COLUMN_PCS,    /* an entry of the table: zigzag difference to the one before */
	COLUMN_FLAGS,  /* an entry: struct mt_node.flags */
	NODE_COLUMNS,
};

/* The entries so far, and a hash table of their indices. */
struct pc_table {
	struct mt_node *entries; /* parent unused */
	uint32_t *index;         /* + 1; 2 * capacity of them */
	uint32_t count, capacity;
};

static void pc_table_fini(struct pc_table *table)
{
	free(table->entries);
	free(table->index);
}

static uint32_t *pc_table_find(const struct pc_table *table, const struct mt_node *node)
{
	uint32_t i = (uint32_t)((node->pc + node->flags) * 0x9e3779b97f4a7c15u >> 32);
	for (;; i++) {
		uint32_t *index = &table->index[i & (2 * table->capacity - 1)];
		if (!*index)
			return index;
		const struct mt_node *entry = &table->entries[*index - 1];
		if (entry->pc == node->pc && entry->flags == node->flags)
			return index;
	}
}

static int pc_table_grow(struct pc_table *table)
{
	uint32_t capacity = table->capacity ? 2 * table->capacity : 4096;
	struct mt_node *entries = realloc(table->entries, capacity * sizeof(*entries));
	if (!entries)
		return -CODEC_EMEM;
	table->entries = entries;
	free(table->index);
	table->index = calloc(2ul * capacity, sizeof(*table->index));
	if (!table->index)
		return -CODEC_EMEM;
	table->capacity = capacity;
	for (uint32_t i = 0; i < table->count; i++)
		*pc_table_find(table, &entries[i]) = i + 1;
	return 0;
}

/* The index of node's (pc, flags), which may be a new one. */
static int pc_table_get(struct pc_table *table, const struct mt_node *node, uint32_t *at)
{
	if (table->count == table->capacity) {
		int error = pc_table_grow(table);
		if (error)
			return error;
	}
	uint32_t *index = pc_table_find(table, node);
	if (!*index) {
		table->entries[table->count] = *node;
		*index = ++table->count;
	}
	*at = *index - 1;
	return 0;
}

static void append_number(struct column *column, uint64_t value)
{
	column->at = varint_put(column->at, value);
}

static int put_nodes(struct codec *codec, struct pc_table *table, const struct mt_node *nodes, uint32_t count,
		     uint32_t node_base)
{
	for (uint32_t i = 0; i < count; i++) {
		uint32_t at;
		int error = pc_table_get(table, &nodes[i], &at);
		if (error)
			return error;
		append_number(&codec->columns[COLUMN_PARENT], node_base + i - nodes[i].parent);
		append_number(&codec->columns[COLUMN_PC], at);
	}
	return 0;
}

static int put_table(struct codec *codec, const struct pc_table *table)
{
	int error = column_reset(&codec->columns[COLUMN_PCS], (size_t)VARINT_MAX * table->count + 1);
	if (!error)
		error = column_reset(&codec->columns[COLUMN_FLAGS], 5ul * table->count + 1);
	uint64_t last = 0;
	for (uint32_t i = 0; i < table->count && !error; i++) {
		append_number(&codec->columns[COLUMN_PCS], zigzag(table->entries[i].pc - last));
		append_number(&codec->columns[COLUMN_FLAGS], table->entries[i].flags);
		last = table->entries[i].pc;
	}
	return error;
}

int codec_encode_nodes(struct codec *codec, const struct mt_node *nodes, uint32_t count, uint32_t node_base,
		       struct codec_buf *out)
{
	struct pc_table table = { 0 };
	if (count > MT_MAX_NODES)
		return -CODEC_EARG;
	int error = column_reset(&codec->columns[COLUMN_PARENT], 5ul * count + 1);
	if (!error)
		error = column_reset(&codec->columns[COLUMN_PC], 5ul * count + 1);
	if (!error)
		error = put_nodes(codec, &table, nodes, count, node_base);
	if (!error)
		error = put_table(codec, &table);
	if (!error)
		error = block_begin(out, MT_BLOCK_NODES, NULL, 0);
	if (!error)
		error = block_add_columns(codec, out, NODE_COLUMNS);
	pc_table_fini(&table);
	if (error)
		return error;
	block_header(out)->count = count;
	block_header(out)->first_ticks = node_base;
	block_end(out);
	return 0;
}

/* Reads the table as the nodes call for it: `entries` has room for one more than `count`. */
struct pc_reader {
	struct varint_in *pcs, *flags;
	struct mt_node *entries;
	uint32_t count, capacity;
	uint64_t last;
};

static int get_pc(struct pc_reader *reader, uint64_t at, struct mt_node *node)
{
	if (at > reader->count)
		return -CODEC_ECORRUPT;
	if (at == reader->count) {
		if (reader->count == reader->capacity)
			return -CODEC_ECORRUPT;
		reader->last += unzigzag(varint_get(reader->pcs));
		reader->entries[reader->count++] = (struct mt_node){
			.pc = reader->last,
			.flags = (uint32_t)varint_get(reader->flags),
		};
	}
	*node = reader->entries[at];
	return 0;
}

static int get_nodes(struct varint_in *in, struct pc_reader *reader, uint32_t count, uint32_t node_base,
		     struct mt_node *nodes)
{
	for (uint32_t i = 0; i < count; i++) {
		int error = get_pc(reader, varint_get(&in[COLUMN_PC]), &nodes[i]);
		if (error)
			return error;
		nodes[i].parent = node_base + i - (uint32_t)varint_get(&in[COLUMN_PARENT]);
	}
	for (unsigned i = 0; i < NODE_COLUMNS; i++)
		if (in[i].bad || in[i].at != in[i].end)
			return -CODEC_ECORRUPT;
	return 0;
}

int codec_decode_nodes(struct codec *codec, const void *block, size_t bytes, struct mt_node *nodes)
{
	struct mt_block header;
	memcpy(&header, block, sizeof(header));
	if (header.type != MT_BLOCK_NODES || header.columns != NODE_COLUMNS || header.first_ticks > MT_MAX_NODES)
		return -CODEC_ECORRUPT;
	uint32_t count = (uint32_t)header.count;
	size_t limits[NODE_COLUMNS] = { 5ul * count, 5ul * count, (size_t)VARINT_MAX * count, 5ul * count };
	struct varint_in in[NODE_COLUMNS];
	struct payload payload = block_payload(block, bytes);
	int error = payload_columns(codec, &payload, NODE_COLUMNS, limits, in);
	if (error)
		return error;
	struct pc_reader reader = { .pcs = &in[COLUMN_PCS], .flags = &in[COLUMN_FLAGS] };
	/* An entry has at least a byte of flags, so this is what there can be. */
	reader.capacity = (uint32_t)(in[COLUMN_FLAGS].end - in[COLUMN_FLAGS].at);
	reader.entries = malloc((reader.capacity + 1ul) * sizeof(*reader.entries));
	if (!reader.entries)
		return -CODEC_EMEM;
	error = get_nodes(in, &reader, count, (uint32_t)header.first_ticks, nodes);
	free(reader.entries);
	return error;
}
