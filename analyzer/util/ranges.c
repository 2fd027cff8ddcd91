#include "analyzer/util/ranges.h"

#include "analyzer/util/error.h"

#include <stdlib.h>

struct range_node {
	struct range range;
	uint64_t priority; /* no child has a greater one */
	struct range_node *left, *right;
};

/* Priorities are a hash of the address: the same trace always makes the same tree. */
static uint64_t priority_of(uint64_t start)
{
	uint64_t h = start * 0x9E3779B97F4A7C15ull;
	h ^= h >> 31;
	return h * 0xD6E8FEB86659FD93ull;
}

const struct range *ranges_overlap(const struct ranges *r, uint64_t start, uint64_t end)
{
	const struct range *first = NULL;
	for (const struct range_node *n = r->root; n;) {
		if (n->range.end <= start) {
			n = n->right;
			continue;
		}
		if (n->range.start < end)
			first = &n->range;
		n = n->left;
	}
	return first;
}

uint64_t ranges_until(const struct ranges *r, uint64_t start)
{
	const struct range *there = ranges_overlap(r, start, start + 1);
	return there && there->start == start ? there->end : start;
}

/* Into what starts below `start` and the rest. */
static void split(struct range_node *n, uint64_t start, struct range_node **low, struct range_node **high)
{
	while (n) {
		if (n->range.start < start) {
			*low = n;
			low = &n->right;
			n = n->right;
		} else {
			*high = n;
			high = &n->left;
			n = n->left;
		}
	}
	*low = *high = NULL;
}

static struct range_node *join(struct range_node *low, struct range_node *high)
{
	struct range_node *root = NULL, **at = &root;
	while (low && high) {
		if (low->priority >= high->priority) {
			*at = low;
			at = &low->right;
			low = low->right;
		} else {
			*at = high;
			at = &high->left;
			high = high->left;
		}
	}
	*at = low ? low : high;
	return root;
}

int ranges_put(struct ranges *r, const struct range *range)
{
	struct range_node *n = malloc(sizeof(*n)), **at = &r->root;
	if (!n)
		return error_memory();
	n->range = *range;
	n->priority = priority_of(range->start);
	while (*at && (*at)->priority >= n->priority)
		at = range->start < (*at)->range.start ? &(*at)->left : &(*at)->right;
	split(*at, range->start, &n->left, &n->right);
	*at = n;
	return 0;
}

void ranges_remove(struct ranges *r, const struct range *range)
{
	struct range_node **at = &r->root;
	while (*at && &(*at)->range != range)
		at = range->start < (*at)->range.start ? &(*at)->left : &(*at)->right;
	struct range_node *n = *at;
	if (!n)
		return;
	*at = join(n->left, n->right);
	free(n);
}

/* Recursion is as deep as the treap: logarithmic but for adversarial addresses, and those only cost stack. The left
 * spine is a loop's. */
static int each(const struct range_node *n, int (*f)(void *arg, const struct range *range), void *arg)
{
	for (; n; n = n->right) {
		int e = each(n->left, f, arg);
		if (!e)
			e = f(arg, &n->range);
		if (e)
			return e;
	}
	return 0;
}

int ranges_each(const struct ranges *r, int (*f)(void *arg, const struct range *range), void *arg)
{
	return each(r->root, f, arg);
}

static int inherit(void *to, const struct range *range)
{
	struct range copy = *range;
	copy.inherited = true;
	return ranges_put(to, &copy);
}

int ranges_inherit(struct ranges *to, const struct ranges *from)
{
	to->root = NULL;
	return ranges_each(from, inherit, to);
}

/* Turns left children up until there are none, then drops the root: no recursion at all. */
void ranges_fini(struct ranges *r)
{
	struct range_node *n = r->root;
	while (n) {
		struct range_node *left = n->left, *right = n->right;
		if (left) {
			n->left = left->right;
			left->right = n;
			n = left;
		} else {
			free(n);
			n = right;
		}
	}
	r->root = NULL;
}
