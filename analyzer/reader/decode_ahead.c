#include "analyzer/reader/decode_ahead.h"

#include <pthread.h>
#include <stdlib.h>

#define STACK_BYTES (1u << 20)

struct ahead {
	struct codec *codec;
	pthread_mutex_t codec_lock; /* held while the codec is used; never taken by who holds `lock` */
	pthread_mutex_t lock;       /* of all below, and of the blocks' states */
	pthread_cond_t given, done;
	struct ahead_block *first, *last; /* that wait */
	pthread_t thread;
	bool running, ends, failed; /* failed: no thread can be made */
};

struct ahead *ahead_new(struct codec *codec)
{
	struct ahead *a = calloc(1, sizeof(*a));
	if (!a)
		return NULL;
	a->codec = codec;
	pthread_mutex_init(&a->codec_lock, NULL);
	pthread_mutex_init(&a->lock, NULL);
	pthread_cond_init(&a->given, NULL);
	pthread_cond_init(&a->done, NULL);
	return a;
}

void ahead_free(struct ahead *a)
{
	if (!a)
		return;
	ahead_stop(a);
	pthread_mutex_destroy(&a->codec_lock);
	pthread_mutex_destroy(&a->lock);
	pthread_cond_destroy(&a->given);
	pthread_cond_destroy(&a->done);
	free(a);
}

void ahead_enter(struct ahead *a)
{
	pthread_mutex_lock(&a->codec_lock);
}

void ahead_leave(struct ahead *a)
{
	pthread_mutex_unlock(&a->codec_lock);
}

/* ---- the thread ------------------------------------------------------------------------------------------ */

static bool are_sound(const struct ahead_block *b)
{
	const struct mt_event *s = b->to.slots;
	const uint32_t *rings = b->to.rings;
	for (size_t i = 0, n = b->head.count; i < n; i++) {
		if (rings[i] >= MT_MAX_CHUNKS || slot_problem(&s[i], i + 1 < n ? &s[i + 1] : NULL, &b->limits))
			return false;
		if (!mt_has_ext(s[i].kind))
			continue;
		if (rings[i + 1] != rings[i])
			return false;
		i++;
	}
	return true;
}

static bool decode(struct ahead *a, struct ahead_block *b)
{
	if (trace_read(b->image, &b->place, &b->block, &b->head) || b->head.count >= b->to.room)
		return false;
	ahead_enter(a);
	int e = codec_decode_events(a->codec, b->block.data, b->block.size, b->to.slots, b->to.rings);
	ahead_leave(a);
	b->sound = !e && are_sound(b);
	return !e;
}

static struct ahead_block *take_first(struct ahead *a)
{
	struct ahead_block *b = a->first;
	a->first = b->next;
	a->last = a->first ? a->last : NULL;
	return b;
}

static void *run(void *arg)
{
	struct ahead *a = arg;
	pthread_mutex_lock(&a->lock);
	while (!a->ends) {
		if (!a->first) {
			pthread_cond_wait(&a->given, &a->lock);
			continue;
		}
		struct ahead_block *b = take_first(a);
		b->state = AHEAD_RUNS;
		pthread_mutex_unlock(&a->lock);
		bool decoded = decode(a, b);
		pthread_mutex_lock(&a->lock);
		b->state = decoded ? AHEAD_DECODED : AHEAD_FAILED;
		pthread_cond_broadcast(&a->done);
	}
	pthread_mutex_unlock(&a->lock);
	return NULL;
}

static bool begin(struct ahead *a)
{
	pthread_attr_t attr;
	if (a->running || a->failed || pthread_attr_init(&attr))
		return a->running;
	pthread_attr_setstacksize(&attr, STACK_BYTES);
	a->ends = false;
	a->running = !pthread_create(&a->thread, &attr, run, a);
	a->failed = !a->running;
	pthread_attr_destroy(&attr);
	return a->running;
}

void ahead_stop(struct ahead *a)
{
	pthread_mutex_lock(&a->lock);
	bool running = a->running;
	a->ends = true;
	a->running = false;
	pthread_cond_signal(&a->given);
	pthread_mutex_unlock(&a->lock);
	if (running)
		pthread_join(a->thread, NULL);
}

/* ---- blocks ---------------------------------------------------------------------------------------------- */

bool ahead_give(struct ahead *a, struct ahead_block *b)
{
	pthread_mutex_lock(&a->lock);
	bool given = begin(a);
	if (given) {
		b->state = AHEAD_WAITS;
		b->next = NULL;
		*(a->first ? &a->last->next : &a->first) = b;
		a->last = b;
		pthread_cond_signal(&a->given);
	}
	pthread_mutex_unlock(&a->lock);
	b->given = given;
	return given;
}

static void take_back(struct ahead *a, struct ahead_block *b)
{
	struct ahead_block **at = &a->first, *before = NULL;
	while (*at != b) {
		before = *at;
		at = &before->next;
	}
	*at = b->next;
	a->last = a->last == b ? before : a->last;
}

bool ahead_take(struct ahead *a, struct ahead_block *b)
{
	if (!b->given)
		return false;
	b->given = false;
	pthread_mutex_lock(&a->lock);
	if (b->state == AHEAD_WAITS)
		take_back(a, b);
	while (b->state == AHEAD_RUNS)
		pthread_cond_wait(&a->done, &a->lock);
	bool decoded = b->state == AHEAD_DECODED;
	b->state = AHEAD_NONE;
	pthread_mutex_unlock(&a->lock);
	return decoded;
}
