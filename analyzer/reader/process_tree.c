/* Who is whose parent, and how everybody ended. */
#include "analyzer/reader/reader_internal.h"
#include "analyzer/util/error.h"
#include "analyzer/util/search.h"
#include "analyzer/util/system/pid_alive.h"

#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#define NO_RECORDER_BYTES (64ull << 20) /* of raw files without a recorder: none will come any more */

static int compare_images(const void *a, const void *b)
{
	const struct image *x = *(struct image *const *)a, *y = *(struct image *const *)b;
	if (x->process.start_real_ns != y->process.start_real_ns)
		return x->process.start_real_ns < y->process.start_real_ns ? -1 : 1;
	if (x->info.pid != y->info.pid)
		return x->info.pid < y->info.pid ? -1 : 1;
	return (x->info.image > y->info.image) - (x->info.image < y->info.image);
}

/* The images by pid; those of one pid in their own order. */
struct by_pid {
	struct image **list;
	size_t count;
};

static int compare_pids(const void *a, const void *b)
{
	const struct image *x = *(struct image *const *)a, *y = *(struct image *const *)b;
	if (x->info.pid != y->info.pid)
		return x->info.pid < y->info.pid ? -1 : 1;
	return (x->process.id > y->process.id) - (x->process.id < y->process.id);
}

static int sort_by_pid(const struct reader *r, struct by_pid *to)
{
	to->count = r->image_count;
	to->list = malloc((to->count + 1) * sizeof(*to->list));
	if (!to->list)
		return error_memory();
	memcpy(to->list, r->images, to->count * sizeof(*to->list));
	qsort(to->list, to->count, sizeof(*to->list), compare_pids);
	return 0;
}

static size_t first_of(const struct by_pid *all, uint32_t pid)
{
	return SEARCH_FIRST(i, all->count, all->list[i]->info.pid >= pid);
}

/* An image of this pid on the same host and session; image UINT32_MAX = the latest that started by `ticks`. */
static struct image *find_image(const struct by_pid *all, const struct image *of, uint32_t pid, uint32_t image,
				uint64_t ticks)
{
	struct image *best = NULL;
	for (size_t i = first_of(all, pid); i < all->count && all->list[i]->info.pid == pid; i++) {
		struct image *im = all->list[i];
		if (im == of || im->process.host != of->process.host)
			continue;
		if (image != UINT32_MAX && im->info.image == image && im->session == of->session)
			return im;
		bool comparable = im->info.pid_ns == of->info.pid_ns || !im->info_known || !of->info_known;
		if (image == UINT32_MAX && comparable && im->info.start_ticks <= ticks &&
		    (!best || im->info.start_ticks > best->info.start_ticks))
			best = im;
	}
	return best;
}

/* Loops can't be: a parent's ids end where the child's begin, and it started no later. */
static void link_parent(const struct by_pid *all, struct image *im)
{
	struct process *p = &im->process;
	const struct mt_info *info = &im->info;
	struct image *before = NULL;
	if (info->origin == MT_ORIGIN_FORK) {
		before = find_image(all, im, info->parent_pid, info->parent_image, 0);
		bool fits = before && before->process.id < p->id;
		p->parent = fits ? &before->process : NULL;
		if (fits)
			before->process.has_heirs = true;
	} else if (info->image) {
		before = find_image(all, im, info->pid, info->image - 1, 0);
	} else {
		before = find_image(all, im, info->parent_pid, UINT32_MAX, info->start_ticks);
	}
	p->creator = before && before->process.id < p->id ? &before->process : NULL;
}

static void set_end(struct image *im)
{
	struct process *p = &im->process;
	p->start_ns = clock_ns(im->clock, image_start_ticks(im));
	p->end_ns = clock_ns(im->clock, im->sign_of_life);
	if (p->end_ns < p->start_ns)
		p->end_ns = p->start_ns;
}

/* An image that was replaced says so; a child that was killed can't, but its parent's wait may have. How it ended the
 * recorder may know, too, but not when: it may have held its memory for long after its last event. */
static void fill_exits(struct reader *r, const struct by_pid *all)
{
	for (size_t i = 0; i < r->image_count; i++) {
		struct image *im = r->images[i], *before = NULL;
		for (size_t k = 0; k < im->exit_count; k++) {
			const struct process_child *x = &im->exits[k];
			struct image *child = find_image(all, im, x->pid, UINT32_MAX, x->ticks);
			if (!child || child->process.state == PROCESS_RUNNING)
				continue;
			const bool known = child->info.exit_kind != MT_EXIT_NONE;
			if ((!known || !child->info.end_ticks) && x->ticks > child->sign_of_life)
				child->sign_of_life = x->ticks;
			if (known)
				continue;
			child->process.exit_kind = x->kind;
			child->process.exit_code = x->code;
		}
		if (im->info.origin == MT_ORIGIN_EXEC && im->info.image)
			before = find_image(all, im, im->info.pid, im->info.image - 1, 0);
		if (before && before->info.boot_start == im->info.boot_start) {
			before->process.exit_kind = MT_EXIT_EXEC;
			if (before->sign_of_life > im->info.start_ticks || !before->info.end_ticks)
				before->sign_of_life = im->info.start_ticks;
		}
	}
}

/* `memtrace run` saw how its child ended; the child's last image is the one that did. */
static void fill_root_exit(struct image *im)
{
	const struct mt_session *h = &im->session->head;
	if (!h->root_exit_kind || im->info.pid != h->root_pid || im->process.exit_kind != MT_EXIT_NONE)
		return;
	im->process.exit_kind = h->root_exit_kind == MT_EXIT_SIGNAL ? MT_EXIT_SIGNAL : MT_EXIT_CODE;
	im->process.exit_code = h->root_exit_code;
	im->process.state = PROCESS_ENDED;
}

/* A process that runs starts a recorder when it has filled a chunk or a second has passed: that may be while we read,
 * and what is raw now may be in use again or gone then. Where one has written this much without a recorder there will
 * be none. */
static bool may_get_recorder(const struct image *im)
{
	return im->process.state == PROCESS_RUNNING && !(im->session->head.flags & MT_SESSION_NO_RECORDER) &&
	       im->raw.file.size < NO_RECORDER_BYTES;
}

/* From another pid namespace than its own nobody knows. */
static bool is_cut_off(const struct image *im)
{
	const struct process *p = &im->process;
	bool killed = p->state == PROCESS_GONE || (p->exit_kind == MT_EXIT_SIGNAL && p->exit_code == SIGKILL);
	uint32_t recorder = im->session->head.recorder_pid;
	return killed && recorder &&
	       (!im->session->here || (pid_alive(p->pid, im->info.pid_ns, im->info.boot_start) == ALIVE_NO &&
				       pid_alive(recorder, im->info.pid_ns, 0) == ALIVE_NO));
}

/* It forked then: killed while it waits for the child, it may have left no later sign. */
static void see_fork(const struct image *child)
{
	struct image *parent = child->process.parent ? image_of(child->process.parent) : NULL;
	uint64_t fork = child->info.fork_ticks;
	if (parent && child->info.fork_exact && !parent->info.end_ticks && parent->sign_of_life < fork)
		parent->sign_of_life = fork;
}

static int set_ends(struct reader *r, size_t first_new)
{
	struct by_pid all;
	if (sort_by_pid(r, &all))
		return -MT_EMEMORY;
	for (size_t i = first_new; i < r->image_count; i++)
		link_parent(&all, r->images[i]);
	fill_exits(r, &all);
	free(all.list);
	for (size_t i = 0; i < r->image_count; i++)
		see_fork(r->images[i]);
	for (size_t i = 0; i < r->image_count; i++) {
		struct image *im = r->images[i];
		fill_root_exit(im);
		if (im->process.exit_kind != MT_EXIT_NONE || *im->process.imported)
			im->process.state = PROCESS_ENDED;
		im->process.cut_off = is_cut_off(im);
		set_end(im);
	}
	return 0;
}

/* Who asks about a running process wants all that it did before: what is younger than the horizon when the reader looks
 * happened after it was asked. A tenth more, as the length of a tick is known roughly. */
static void let_horizon_pass(const struct reader *r)
{
	bool runs = false;
	for (size_t i = 0; !runs && i < r->image_count; i++)
		runs = r->images[i]->process.state == PROCESS_RUNNING;
	if (runs)
		nanosleep(&(struct timespec){ .tv_nsec = READER_HORIZON_NS + READER_HORIZON_NS / 10 }, NULL);
}

int process_tree_load(struct reader *r)
{
	int e = 0;
	qsort(r->images, r->image_count, sizeof(*r->images), compare_images);
	for (size_t i = 0; i < r->image_count; i++) {
		r->images[i]->process.id = (unsigned)i;
		r->images[i]->process.state = image_is_alive(r->images[i]) ? PROCESS_RUNNING : PROCESS_GONE;
	}
	for (size_t i = 0; i < r->session_count; i++) /* who has ended had the recorder started before */
		directory_look_again(&r->sessions[i]);
	for (size_t i = 0; i < r->image_count; i++)
		r->images[i]->session->recorder |= may_get_recorder(r->images[i]);
	let_horizon_pass(r);
	for (size_t i = 0; !e && i < r->image_count; i++)
		e = image_load(r->images[i]);
	return e ? e : set_ends(r, 0);
}

int process_tree_refresh(struct reader *r, size_t first_new)
{
	int e = 0;
	qsort(r->images + first_new, r->image_count - first_new, sizeof(*r->images), compare_images);
	for (size_t i = 0; !e && i < r->image_count; i++) {
		struct image *im = r->images[i];
		im->process.id = (unsigned)i;
		if (i >= first_new || r->sources[i].parked) {
			im->process.state = image_is_alive(im) ? PROCESS_RUNNING : PROCESS_GONE;
			im->session->recorder |= may_get_recorder(im);
			e = i < first_new ? image_refresh(im) : image_load(im);
		}
	}
	return e ? e : set_ends(r, first_new);
}
