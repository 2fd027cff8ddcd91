#include "analyzer/replay/pool/block_set.h"

#include <stddef.h>

static bool is_below(const struct set_key *a, const struct set_key *b)
{
	if (a->stream != b->stream)
		return a->stream < b->stream;
	if (a->bytes != b->bytes)
		return a->bytes < b->bytes;
	return a->segment != b->segment ? a->segment < b->segment : a->addr < b->addr;
}

/* Numerical Recipes' generator: good enough for priorities. */
static uint32_t next_random(struct block_set *s)
{
	return s->random = s->random * 1664525u + 1013904223u;
}

static void split(struct set_node *t, const struct set_key *key, struct set_node **below, struct set_node **rest)
{
	while (t)
		if (is_below(&t->key, key)) {
			*below = t;
			below = &t->right;
			t = t->right;
		} else {
			*rest = t;
			rest = &t->left;
			t = t->left;
		}
	*below = *rest = NULL;
}

/* All of `a` is below all of `b`. */
static struct set_node *join(struct set_node *a, struct set_node *b)
{
	struct set_node *root = NULL, **at = &root;

	while (a && b)
		if (a->priority >= b->priority) {
			*at = a;
			at = &a->right;
			a = a->right;
		} else {
			*at = b;
			at = &b->left;
			b = b->left;
		}
	*at = a ? a : b;
	return root;
}

void block_set_insert(struct block_set *s, struct set_node *n)
{
	struct set_node **at = &s->root;

	n->priority = next_random(s);
	while (*at && (*at)->priority >= n->priority)
		at = is_below(&(*at)->key, &n->key) ? &(*at)->right : &(*at)->left;
	split(*at, &n->key, &n->left, &n->right);
	*at = n;
}

void block_set_remove(struct block_set *s, struct set_node *n)
{
	struct set_node **at = &s->root;

	while (*at && *at != n)
		at = is_below(&(*at)->key, &n->key) ? &(*at)->right : &(*at)->left;
	if (*at)
		*at = join(n->left, n->right);
}

struct set_node *block_set_from(const struct block_set *s, struct set_key key)
{
	struct set_node *found = NULL;

	for (struct set_node *n = s->root; n;)
		if (is_below(&n->key, &key)) {
			n = n->right;
		} else {
			found = n;
			n = n->left;
		}
	return found;
}

struct set_node *block_set_before(const struct block_set *s, struct set_key key)
{
	struct set_node *found = NULL;

	for (struct set_node *n = s->root; n;)
		if (is_below(&n->key, &key)) {
			found = n;
			n = n->right;
		} else {
			n = n->left;
		}
	return found;
}

struct set_node *block_set_next(const struct block_set *s, const struct set_node *n)
{
	struct set_key key = n->key;

	key.addr++;
	return block_set_from(s, key);
}
