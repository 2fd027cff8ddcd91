#include "analyzer/model/selection/owners.h"

#include "analyzer/symbols/python_arenas.h"
#include "analyzer/util/error.h"
#include "analyzer/util/minmax.h"
#include "analyzer/util/output.h"
#include "analyzer/util/radix_sort.h"

#include <math.h>
#include <regex.h>
#include <stdlib.h>
#include <string.h>
#include <uthash.h>

struct entry {
	UT_hash_handle hh;
	struct owner_key key;
	uint32_t owner;
};

/* One model site with its part of the measure. */
struct part {
	uint32_t owner, stack;
	uint32_t first; /* its place among all parts, then that of the first one of its stack */
	const struct model_site *site;
};

struct builder {
	const struct reader *reader;
	struct stacks *stacks;
	const struct owners_query *query;
	struct owners *sites;
	size_t owner_room;
	struct part *parts;
	size_t count, room;
	struct entry *entries;
	regex_t regex;
	unsigned char *matched; /* by stack: 0 unknown, 1 no, 2 yes */
	uint32_t matched_room;
	/* exact sums: of everything, of what has sampled stacks or none */
	struct {
		uint64_t bytes, blocks;
	} all, small;
	struct estimate picked_bytes, picked_blocks; /* of blocks that stand for others which were not recorded */
	double looks;
};

static const struct process *process_of(const struct reader *r, const struct model_site *site)
{
	return reader_process(r, site->process);
}

/* Its figures stand for all its blocks already, in the model. */
static bool is_picked(const struct reader *r, const struct model_site *site)
{
	return site->sampled && process_is_picked(process_of(r, site));
}

double owners_weight(const struct reader *r, const struct model_site *site)
{
	if (site->sampled == 0 || site->sampled == MODEL_UNSAMPLED || is_picked(r, site))
		return 1;
	return 1 / estimate_chance(site->sampled, process_of(r, site)->sample_bytes);
}

/* Who is asked for is told by the stack. If not, every event says it, and there is nothing to estimate. */
static bool is_by_stack(const struct owners_query *q)
{
	return q->filter || q->fold || (q->by != BY_THREAD && q->by != BY_PROCESS && q->by != BY_SIZE);
}

static void measure(const struct model_site *site, enum owners_measure how, uint64_t *bytes, uint64_t *blocks)
{
	switch (how) {
	case OWNERS_LIVE:
		*bytes = site->live_bytes;
		*blocks = site->live_blocks;
		break;
	case OWNERS_PEAK:
		*bytes = site->peak_bytes;
		*blocks = site->peak_blocks;
		break;
	case OWNERS_HOST_PEAK:
		*bytes = site->host_peak_bytes;
		*blocks = site->host_peak_blocks;
		break;
	case OWNERS_TEMPORARY:
		*blocks = site->temporary;
		*bytes = 0;
		break;
	}
}

static bool has_any(const struct model_site *site, unsigned measures)
{
	uint64_t bytes, blocks = 0;
	for (enum owners_measure how = 0; how <= OWNERS_TEMPORARY && !blocks; how++)
		if (measures & 1u << how)
			measure(site, how, &bytes, &blocks);
	return blocks;
}

/* ---- filter -------------------------------------------------------------------------------------------- */

static bool frame_matches(const regex_t *regex, const struct frame *f)
{
	const char *texts[] = { f->function, f->name, f->file, f->library };
	for (size_t i = 0; i < sizeof(texts) / sizeof(*texts); i++)
		if (texts[i] && regexec(regex, texts[i], 0, NULL, 0) == 0)
			return true;
	return false;
}

static bool remember_matches(struct builder *b)
{
	uint32_t room = stacks_count(b->stacks);
	if (room <= b->matched_room)
		return true;
	room += room / 2;
	unsigned char *matched = realloc(b->matched, room);
	if (!matched)
		return false;
	memset(matched + b->matched_room, 0, room - b->matched_room);
	b->matched = matched;
	b->matched_room = room;
	return true;
}

static bool level_matches(struct builder *b, uint32_t stack)
{
	if (!b->matched[stack]) {
		const struct frame *frames;
		size_t count = stacks_frames(b->stacks, stack, &frames);
		b->matched[stack] = 1;
		for (size_t i = 0; i < count; i++)
			if (frame_matches(&b->regex, &frames[i]))
				b->matched[stack] = 2;
	}
	return b->matched[stack] == 2;
}

static bool passes_filter(struct builder *b, uint32_t stack)
{
	if (!b->query->filter)
		return true;
	stack = stacks_merged(b->stacks, stack);
	if (!remember_matches(b))
		return false;
	for (; stack; stack = stacks_outer(b->stacks, stack))
		if (level_matches(b, stack))
			return true;
	return false;
}

/* ---- keys and labels ----------------------------------------------------------------------------------- */

static uint64_t word(const void *pointer)
{
	return (uint64_t)(uintptr_t)pointer;
}

static struct owner_key site_key(const struct frame *f)
{
	if (!f)
		return (struct owner_key){ 0 };
	if (!f->function)
		return (struct owner_key){ word(f->library), 0, f->offset };
	return (struct owner_key){ word(f->function), word(f->file ? f->file : f->library), f->line };
}

static enum category category_of(const struct builder *b, uint32_t stack)
{
	return b->query->categories ? categories_of(b->query->categories, stack, LIFETIME_UNKNOWN) : CATEGORY_unknown;
}

static struct owner_key key_of(const struct builder *b, const struct model_site *site, uint32_t stack,
			       const struct frame *f)
{
	switch (b->query->by) {
	case BY_STACK:
		return (struct owner_key){ .a = stack };
	case BY_FUNCTION:
		return f && f->function ? (struct owner_key){ .a = word(f->function) } : site_key(f);
	case BY_FILE:
		return f ? (struct owner_key){ .a = word(f->file ? f->file : f->library) } : (struct owner_key){ 0 };
	case BY_LIBRARY:
		return f ? (struct owner_key){ .a = word(f->library) } : (struct owner_key){ 0 };
	case BY_PROCESS:
		return (struct owner_key){ .a = site->process };
	case BY_CATEGORY:
		return (struct owner_key){ .a = category_of(b, stack), .b = 1 };
	case BY_THREAD:
		return (struct owner_key){ .a = site->process, .b = site->split };
	case BY_SIZE:
		return (struct owner_key){ .a = site->split };
	default:
		return site_key(f);
	}
}

char *owners_thread(const struct reader *r, const struct model_site *site)
{
	const struct process *p = reader_process(r, site->process);
	const struct process_thread *t = process_thread(p, site->split);
	if (!t)
		return output_format("%u thread %u", p->pid, site->split);
	return output_format("%u/%u %s", p->pid, t->tid, *t->name ? t->name : p->name);
}

static char *label_of(const struct builder *b, const struct model_site *site, uint32_t stack, const struct frame *f)
{
	switch (b->query->by) {
	case BY_CATEGORY:
		return output_format("%s", category_name(category_of(b, stack)));
	case BY_FILE:
		return output_format("%s", !f ? "no stack" : f->file ? f->file : f->library ? f->library : "?");
	case BY_LIBRARY:
		return output_format("%s", !f ? "no stack" : f->library ? f->library : "no library");
	case BY_THREAD:
		return owners_thread(b->reader, site);
	case BY_SIZE:
		return output_size_class(site->split);
	case BY_PROCESS: {
		const struct process *p = reader_process(b->reader, site->process);
		return output_format("%u %s", p->pid, p->name);
	}
	default:
		return NULL;
	}
}

/* ---- grouping ------------------------------------------------------------------------------------------ */

static struct owner *new_owner(struct builder *b)
{
	struct owners *s = b->sites;
	if (s->count == b->owner_room) {
		size_t room = b->owner_room ? b->owner_room * 2 : 256;
		struct owner *owners = realloc(s->owners, room * sizeof(*owners));
		if (!owners)
			return NULL;
		s->owners = owners;
		b->owner_room = room;
	}
	s->owners[s->count] = (struct owner){ .number = (unsigned)s->count };
	return &s->owners[s->count++];
}

static const char *fold_of(const struct builder *b, const struct model_site *site, uint32_t stack)
{
	uint64_t bytes = 0, blocks = 0;
	measure(site, b->query->measure, &bytes, &blocks);
	const char *arena = b->query->arenas && site->kind == MODEL_MAP
				    ? python_arenas_label(b->stacks, stack, bytes, blocks)
				    : NULL;
	return arena ? arena : b->query->fold && b->query->by != BY_STACK ? b->query->fold(b->stacks, stack) : NULL;
}

/* Python files are no libraries: there the library below them is meant. */
static unsigned site_flags(const struct builder *b)
{
	return b->query->flags | (b->query->by == BY_LIBRARY ? STACK_NO_PYTHON : 0);
}

static struct entry *find_entry(const struct builder *b, const struct model_site *site, uint32_t stack,
				const char *fold, const struct frame *frame, struct owner_key *key)
{
	struct entry *entry;
	*key = fold ? (struct owner_key){ word(fold), UINT64_MAX, 0 } : key_of(b, site, stack, frame);
	HASH_FIND(hh, b->entries, key, sizeof(*key), entry);
	return entry;
}

static int find_owner(struct builder *b, const struct model_site *site, uint32_t stack, uint32_t *index)
{
	const char *fold = fold_of(b, site, stack);
	const struct frame *frame = fold ? NULL : stacks_site_frame(b->stacks, stack, site_flags(b));
	struct owner_key key;
	struct entry *entry = find_entry(b, site, stack, fold, frame, &key);
	if (entry) {
		*index = entry->owner;
		return 0;
	}
	struct owner *owner = new_owner(b);
	entry = malloc(sizeof(*entry));
	if (!owner || !entry) {
		free(entry);
		return error_memory();
	}
	owner->folded = fold != NULL;
	owner->label = fold ? output_format("%s", fold) : label_of(b, site, stack, frame);
	owner->frame = frame;
	owner->key = key;
	entry->key = key;
	*index = entry->owner = (uint32_t)b->sites->count - 1;
	HASH_ADD(hh, b->entries, key, sizeof(key), entry);
	return 0;
}

static uint32_t stack_of(const struct builder *b, const struct model_process *mp, const struct model_site *site)
{
	uint32_t stack = stacks_of_site(b->stacks, mp->process, site->number, site->node, site->node2);
	return b->query->by == BY_STACK ? stacks_merged(b->stacks, stack) : stack;
}

static int add_part(struct builder *b, const struct model_process *mp, const struct model_site *site)
{
	struct part part = { .site = site, .stack = stack_of(b, mp, site), .first = (uint32_t)b->count };
	if (!passes_filter(b, part.stack))
		return 0;
	int e = find_owner(b, site, part.stack, &part.owner);
	if (e < 0)
		return e;
	if (b->count == b->room) {
		size_t room = b->room ? b->room * 2 : 1024;
		struct part *parts = realloc(b->parts, room * sizeof(*parts));
		if (!parts)
			return error_memory();
		b->parts = parts;
		b->room = room;
	}
	b->parts[b->count++] = part;
	return 0;
}

static bool wants_process(const struct owners_query *q, const struct process *p)
{
	if (q->processes && !q->processes[p->id])
		return false;
	return !q->ended_only || (p->state == PROCESS_ENDED && p->exit_kind == MT_EXIT_CODE);
}

static int add_site(struct builder *b, const struct model_process *mp, const struct model_site *site)
{
	uint64_t bytes = 0, blocks = 0;
	if (site->kind != b->query->kind || (b->query->device && site->device != b->query->device->index))
		return 0;
	measure(site, b->query->measure, &bytes, &blocks);
	b->all.bytes += bytes;
	b->all.blocks += blocks;
	b->small.bytes += site->sampled ? bytes : 0;
	b->small.blocks += site->sampled ? blocks : 0;
	model_add_picked(site, process_of(b->reader, site), bytes, &b->picked_bytes, &b->picked_blocks);
	if (blocks == 0 || (site->sampled == MODEL_UNSAMPLED && is_by_stack(b->query)))
		return 0;
	return add_part(b, mp, site);
}

static int add_process(struct builder *b, const struct model_process *mp)
{
	int e = 0;
	for (uint32_t i = 0; i < mp->site_count && e == 0 && wants_process(b->query, mp->process); i++)
		e = add_site(b, mp, &mp->sites[i]);
	return e;
}

static int add_list(struct builder *b, const struct model *m)
{
	int e = 0;
	for (size_t i = 0; i < b->query->list_count && e == 0; i++) {
		const struct model_process *mp = model_process(m, b->query->list[i].process);
		e = wants_process(b->query, mp->process) ? add_site(b, mp, &b->query->list[i]) : 0;
	}
	return e;
}

/* ---- members ------------------------------------------------------------------------------------------- */

RADIX_SORT(sort_by_stack, struct part, s->stack)
RADIX_SORT(sort_by_first, struct part, s->first)

static int larger_stack(const void *a, const void *b)
{
	const struct owner_stack *x = a, *y = b;
	if (x->bytes != y->bytes)
		return x->bytes > y->bytes ? -1 : 1;
	if (x->blocks != y->blocks)
		return x->blocks > y->blocks ? -1 : 1;
	return (x->first > y->first) - (x->first < y->first);
}

static void put_largest_first(struct owner_stack *stacks, size_t count)
{
	size_t best = 0;
	for (size_t i = 1; i < count; i++)
		if (larger_stack(&stacks[i], &stacks[best]) < 0)
			best = i;
	const struct owner_stack first = stacks[0];
	stacks[0] = stacks[best];
	stacks[best] = first;
}

static int larger_owner(const void *a, const void *b)
{
	const struct owner *x = a, *y = b;
	if (x->bytes != y->bytes)
		return x->bytes > y->bytes ? -1 : 1;
	if (x->blocks != y->blocks)
		return x->blocks > y->blocks ? -1 : 1;
	return (x->number > y->number) - (x->number < y->number);
}

/* What parts of an owner add up to: exactly known ones and estimates. */
struct sums {
	uint64_t bytes, blocks;
	struct estimate bytes_sampled, blocks_sampled;
};

static void add_to_sums(const struct builder *b, struct sums *sums, struct owner_stack *stack, const struct part *part)
{
	uint64_t size = part->site->sampled, mean = reader_process(b->reader, part->site->process)->sample_bytes,
		 bytes = 0, blocks = 0;
	measure(part->site, b->query->measure, &bytes, &blocks);
	if (is_picked(b->reader, part->site)) {
		model_add_picked(part->site, process_of(b->reader, part->site), bytes, &sums->bytes_sampled,
				 &sums->blocks_sampled);
		stack->bytes += bytes;
		stack->blocks += blocks;
		return;
	}
	if (!size || !is_by_stack(b->query)) {
		sums->bytes += bytes;
		sums->blocks += blocks;
		stack->bytes += bytes;
		stack->blocks += blocks;
		return;
	}
	double weight = owners_weight(b->reader, part->site);
	estimate_add_bytes(&sums->bytes_sampled, size, bytes / size, mean);
	estimate_add_blocks(&sums->blocks_sampled, size, blocks, mean);
	stack->bytes += (uint64_t)llround((double)bytes * weight);
	stack->blocks += (uint64_t)llround((double)blocks * weight);
}

static uint64_t whole(double x)
{
	return (uint64_t)llround(x);
}

/* A peak is the highest of many estimates. */
static struct estimate_range range_of_picked(const struct builder *b, const struct estimate *e)
{
	return b->query->measure == OWNERS_LIVE ? estimate_range(e, INFINITY) : estimate_range_of_highest(e, b->looks);
}

static void finish_sums(const struct builder *b, struct owner *o, const struct sums *sums)
{
	/* how much there was in all is known unless that is an estimate, too */
	const bool picked = b->picked_bytes.seen > 0;
	const double most_blocks = picked ? INFINITY : (double)b->small.blocks;
	struct estimate_range bytes = picked ? range_of_picked(b, &sums->bytes_sampled)
					     : estimate_range(&sums->bytes_sampled, (double)b->small.bytes);
	struct estimate_range blocks =
		picked ? range_of_picked(b, &sums->blocks_sampled) : estimate_range(&sums->blocks_sampled, most_blocks);
	o->bytes = o->sum.bytes = sums->bytes + whole(sums->bytes_sampled.sum);
	o->sum.bytes_low = sums->bytes + whole(bytes.low);
	o->sum.bytes_high = sums->bytes + whole(bytes.high);
	o->blocks = o->sum.blocks = sums->blocks + whole(fmin(sums->blocks_sampled.sum, most_blocks));
	o->sum.blocks_low = sums->blocks + whole(blocks.low);
	o->sum.blocks_high = sums->blocks + whole(blocks.high);
	o->estimated = sums->blocks_sampled.seen > 0;
}

/* Adds n parts, sorted by stack and process, to their owner. */
static void fill_owner(const struct builder *b, struct owner *o, const struct part *parts, size_t n)
{
	struct sums sums = { 0 };
	for (size_t i = 0; i < n; i++) {
		const struct part *part = &parts[i];
		if (i == 0 || part->stack != parts[i - 1].stack)
			o->stacks[o->stack_count++] =
				(struct owner_stack){ .stack = part->stack, .first = part->first };
		add_to_sums(b, &sums, &o->stacks[o->stack_count - 1], part);
		o->members[o->member_count++] = part->site;
	}
	finish_sums(b, o, &sums);
}

static void find_ranks(const struct reader *r, struct owner *o)
{
	o->rank_low = o->rank_high = PROCESS_NO_RANK;
	for (size_t i = 0; i < o->member_count; i++) {
		int64_t rank = reader_process(r, o->members[i]->process)->rank;
		if (rank == PROCESS_NO_RANK)
			continue;
		o->rank_low = o->rank_low == PROCESS_NO_RANK || rank < o->rank_low ? rank : o->rank_low;
		o->rank_high = rank > o->rank_high ? rank : o->rank_high;
	}
}

static unsigned count_processes(const struct owner *o, unsigned char *seen)
{
	unsigned count = 0;
	for (size_t i = 0; i < o->member_count; i++) {
		count += !seen[o->members[i]->process];
		seen[o->members[i]->process] = 1;
	}
	for (size_t i = 0; i < o->member_count; i++)
		seen[o->members[i]->process] = 0;
	return count;
}

static void keep_first_stack(struct owner *o)
{
	struct owner_stack *first = realloc(o->stacks, sizeof(*first));
	o->stacks = first ? first : o->stacks;
}

static void drop_members(struct owner *o)
{
	free(o->members);
	o->members = NULL;
	o->member_count = 0;
}

static int finish_owner(struct builder *b, struct owner *o, const struct part *parts, size_t n)
{
	o->stacks = malloc(n * sizeof(*o->stacks));
	o->members = malloc(n * sizeof(*o->members));
	unsigned char *seen = calloc(reader_processes(b->reader) + 1, 1);
	if (!o->stacks || !o->members || !seen) {
		free(seen);
		return error_memory();
	}
	fill_owner(b, o, parts, n);
	o->processes = count_processes(o, seen);
	find_ranks(b->reader, o);
	free(seen);
	put_largest_first(o->stacks, o->stack_count);
	struct stack_site where = stacks_site(b->stacks, o->stacks->stack, site_flags(b));
	if (!o->label)
		o->frame = where.frame;
	o->caller = where.caller; /* of its largest stack */
	o->callee = where.callee;
	o->category = category_of(b, o->stacks->stack);
	if (b->query->brief)
		keep_first_stack(o);
	b->sites->bytes += o->bytes;
	b->sites->blocks += o->blocks;
	b->sites->estimated = b->sites->estimated || o->estimated;
	return 0;
}

static bool is_of_mappings(const struct owners_query *q)
{
	return q->kind == MODEL_MAP && (q->by == BY_UNSET || q->by == BY_SITE);
}

static int add_member(struct owner *o, const struct model_site *site)
{
	const struct model_site **members = realloc(o->members, (o->member_count + 1) * sizeof(*members));
	if (!members)
		return error_memory();
	members[o->member_count] = site;
	o->members = members;
	o->member_count++;
	return 0;
}

static int by_number(const void *a, const void *b)
{
	const struct model_site *x = a, *y = b;
	return x->process != y->process ? (x->process > y->process ? 1 : -1)
					: (x->number > y->number) - (x->number < y->number);
}

static bool is_listed(const struct owners_query *q, const struct model_site *site)
{
	return q->list && bsearch(site, q->list, q->list_count, sizeof(*q->list), by_number);
}

/* What other stacks of an owner had mapped at other moments belongs to how it grew: a table that moves may be mapped
 * anew by another line. Of the heap nobody knows that any more. */
static int add_absent(struct builder *b, const struct model_process *mp)
{
	int e = 0;
	for (uint32_t i = 0; i < mp->site_count && e == 0; i++) {
		const struct model_site *site = &mp->sites[i];
		uint64_t bytes = 0, blocks = 0;
		measure(site, b->query->measure, &bytes, &blocks);
		if (site->kind != MODEL_MAP || blocks || site->sampled == MODEL_UNSAMPLED || is_listed(b->query, site))
			continue;
		const uint32_t stack = stack_of(b, mp, site);
		if (!passes_filter(b, stack))
			continue;
		struct owner_key key;
		const struct entry *entry = find_entry(b, site, stack, fold_of(b, site, stack),
						       stacks_site_frame(b->stacks, stack, site_flags(b)), &key);
		e = entry ? add_member(&b->sites->owners[entry->owner], site) : 0;
	}
	return e;
}

/* Those of a stack side by side, in the order in which they were added; stacks in the order of their first ones. (The
 * numbers of stacks depend on what was asked of them before.) */
static int sort_parts(struct builder *b)
{
	int e = sort_by_stack(&b->parts, b->count);
	for (size_t i = 1; e == 0 && i < b->count; i++)
		if (b->parts[i].stack == b->parts[i - 1].stack)
			b->parts[i].first = b->parts[i - 1].first;
	return e ? e : sort_by_first(&b->parts, b->count);
}

/* Each owner's parts side by side, by stack; to[owner] is where they end. */
static int gather_parts(struct builder *b, size_t *to)
{
	int e = b->count ? sort_parts(b) : 0;
	struct part *parts = e ? NULL : malloc((b->count + 1) * sizeof(*parts));
	if (!parts)
		return error_memory();
	for (size_t i = 0; i < b->count; i++)
		to[b->parts[i].owner + 1]++;
	for (size_t o = 1; o <= b->sites->count; o++)
		to[o] += to[o - 1];
	for (size_t i = 0; i < b->count; i++)
		parts[to[b->parts[i].owner]++] = b->parts[i];
	free(b->parts);
	b->parts = parts;
	return 0;
}

static int finish_parts(struct builder *b)
{
	size_t *to = calloc(b->sites->count + 2, sizeof(*to));
	int e = to ? gather_parts(b, to) : error_memory();
	for (size_t o = 0, from = 0; e == 0 && o < b->sites->count; from = to[o++])
		e = finish_owner(b, &b->sites->owners[o], b->parts + from, to[o] - from);
	free(to);
	return e;
}

static int finish_owners(struct builder *b, const struct model *m)
{
	int e = finish_parts(b);
	if (e < 0)
		return e;
	for (unsigned id = 0; is_of_mappings(b->query) && id < reader_processes(b->reader); id++) {
		const struct model_process *mp = model_process(m, id);
		e = wants_process(b->query, mp->process) ? add_absent(b, mp) : 0;
		if (e < 0)
			return e;
	}
	if (!b->query->filter) {
		b->sites->bytes = b->all.bytes;
		b->sites->blocks = b->all.blocks;
	}
	const struct estimate_range all = range_of_picked(b, &b->picked_bytes);
	b->sites->picked = b->picked_bytes.seen > 0;
	b->sites->bytes_low = less(b->sites->bytes, whole(b->picked_bytes.sum - all.low));
	b->sites->bytes_high = b->sites->bytes + whole(all.high - b->picked_bytes.sum);
	if (b->sites->count)
		qsort(b->sites->owners, b->sites->count, sizeof(*b->sites->owners), larger_owner);
	for (size_t i = OWNERS_WITH_MEMBERS; b->query->brief && i < b->sites->count; i++)
		drop_members(&b->sites->owners[i]);
	return 0;
}

static void builder_fini(struct builder *b)
{
	struct entry *entry, *next;
	HASH_ITER(hh, b->entries, entry, next)
	{
		HASH_DEL(b->entries, entry);
		free(entry);
	}
	if (b->query->filter)
		regfree(&b->regex);
	free(b->parts);
	free(b->matched);
}

static int compile_filter(struct builder *b)
{
	char why[256];
	if (!b->query->filter)
		return 0;
	int code = regcomp(&b->regex, b->query->filter, REG_EXTENDED | REG_NOSUB);
	if (code == 0)
		return 0;
	regerror(code, &b->regex, why, sizeof(why));
	return error_set(MT_EUSAGE, "--filter", ERROR_NO_OFFSET, "%s: %s", b->query->filter, why);
}

void owners_look_ahead(const struct model *m, const struct reader *r, struct stacks *stacks, unsigned measures)
{
	for (unsigned id = 0; id < reader_processes(r); id++) {
		const struct model_process *mp = model_process(m, id);
		for (uint32_t i = 0; i < mp->site_count; i++) {
			const struct model_site *site = &mp->sites[i];
			if (site->sampled == MODEL_UNSAMPLED || !has_any(site, measures))
				continue;
			stacks_prepare(stacks, mp->process, site->node);
			stacks_prepare(stacks, mp->process, site->node2);
		}
	}
	stacks_look_ahead(stacks, NULL);
}

/* Who is listed need not have anything left that a measure would find. */
static void look_ahead(const struct builder *b, const struct model *m)
{
	const struct owners_query *q = b->query;
	for (size_t i = 0; i < q->list_count; i++) {
		if (q->list[i].kind != q->kind)
			continue;
		const struct process *p = model_process(m, q->list[i].process)->process;
		stacks_prepare(b->stacks, p, q->list[i].node);
		stacks_prepare(b->stacks, p, q->list[i].node2);
	}
	if (q->list)
		stacks_look_ahead(b->stacks, NULL);
	else
		owners_look_ahead(m, b->reader, b->stacks, 1u << q->measure);
}

int owners_build(struct owners **out, const struct model *m, const struct reader *r, struct stacks *stacks,
		 const struct owners_query *q)
{
	*out = NULL;
	struct builder b = { .reader = r, .stacks = stacks, .query = q, .looks = (double)model_events(m) };
	if (q->by == BY_PHASE || q->by == BY_STEP)
		return error_set(MT_EUSAGE, "--by", ERROR_NO_OFFSET, "only a timeline is by phase or step");
	int e = compile_filter(&b);
	if (e < 0)
		return e;
	b.sites = calloc(1, sizeof(*b.sites));
	if (!b.sites)
		e = error_memory();
	if (e == 0 && is_by_stack(q))
		look_ahead(&b, m);
	for (unsigned id = 0; e == 0 && !q->list && id < reader_processes(r); id++)
		e = add_process(&b, model_process(m, id));
	e = e == 0 && q->list ? add_list(&b, m) : e;
	if (e == 0)
		e = finish_owners(&b, m);
	builder_fini(&b);
	if (e < 0) {
		owners_free(b.sites);
		return e;
	}
	*out = b.sites;
	return 0;
}

void owners_free(struct owners *s)
{
	if (!s)
		return;
	for (size_t i = 0; i < s->count; i++) {
		free(s->owners[i].label);
		free(s->owners[i].stacks);
		free(s->owners[i].members);
	}
	free(s->owners);
	free(s);
}
