/* The words of PYTORCH_CUDA_ALLOC_CONF (PYTORCH_ALLOC_CONF since PyTorch 2.9) that change where blocks lie. */
#include "analyzer/replay/pool/replay.h"
#include "analyzer/util/error.h"
#include "analyzer/util/output.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define MIB             1048576ull
#define LEAST_SPLIT_MIB 20 /* PyTorch refuses less */

const char *const replay_usual[] = {
	"expandable_segments:True", "expandable_segments:False",  "max_split_size_mb:64",
	"max_split_size_mb:256",    "roundup_power2_divisions:8",
};
const size_t replay_usual_count = sizeof(replay_usual) / sizeof(replay_usual[0]);

struct words {
	struct cuda_pool_settings *settings;
	uint64_t device_bytes;
	bool strict;
};

static int is_wrong(const char *key, const char *value, const char *want)
{
	return error_set(MT_EUSAGE, "--alloc-conf", ERROR_NO_OFFSET, "%s:%s: %s", key, value, want);
}

static int read_number(const char *key, const char *value, double least, double most, double *number)
{
	char *end, range[64];
	*number = strtod(value, &end);
	if (end != value && !*end && *number >= least && *number <= most)
		return 0;
	snprintf(range, sizeof(range), "a number from %.0f to %.0f", least, most);
	return is_wrong(key, value, range);
}

static int set_expandable(const struct words *w, const char *key, char *value)
{
	if (strcmp(value, "True") && strcmp(value, "False"))
		return is_wrong(key, value, "True or False");
	w->settings->expandable = *value == 'T';
	return 0;
}

static int set_max_split(const struct words *w, const char *key, char *value)
{
	double n;
	int e = read_number(key, value, LEAST_SPLIT_MIB + 1, 1 << 24, &n);
	if (!e)
		w->settings->max_split_bytes = (uint64_t)n * MIB;
	return e;
}

static int set_threshold(const struct words *w, const char *key, char *value)
{
	double n;
	int e = read_number(key, value, 0, 1, &n);
	if (!e)
		w->settings->gc_threshold = n;
	return e;
}

static int set_fraction(const struct words *w, const char *key, char *value)
{
	double n;
	int e = read_number(key, value, 0, 1, &n);
	if (!e && w->device_bytes)
		w->settings->allowed_bytes = (uint64_t)(n * (double)w->device_bytes);
	return e;
}

static int set_megabytes(const char *key, const char *value, double least, uint64_t *bytes)
{
	double n;
	int e = read_number(key, value, least, 1 << 24, &n);
	if (!e)
		*bytes = (uint64_t)n * MIB;
	return e;
}

static int set_rounding(const struct words *w, const char *key, char *value)
{
	return set_megabytes(key, value, LEAST_SPLIT_MIB, &w->settings->most_rounding);
}

static int set_segment(const struct words *w, const char *key, char *value)
{
	return set_megabytes(key, value, LEAST_SPLIT_MIB, &w->settings->large_segment);
}

/* torch_npu's older word: of expandable segments alone. */
static int set_page(const struct words *w, const char *key, char *value)
{
	return set_megabytes(key, value, LEAST_SPLIT_MIB, &w->settings->large_page);
}

static int set_huge(const struct words *w, const char *key, char *value)
{
	w->settings->huge_pages = !strcmp(value, "1g");
	return w->settings->huge_pages ? 0 : is_wrong(key, value, "only 1g");
}

static int set_alignment(const struct words *w, const char *key, char *value)
{
	double n;
	int e = read_number(key, value, 0, 16, &n);
	if (!e)
		w->settings->aligned = (uint64_t)n * 1024;
	return e;
}

static bool is_power(uint64_t n)
{
	return n && !(n & (n - 1));
}

/* "256:1": of that size in MiB; what lies below the first is as the first, what isn't named has none. ">:8": of all
 * beyond the last one (before PyTorch 2.9 of that one, too). *next: behind the last one, 0 = there is none. */
static int set_interval(const struct words *w, const char *key, char *pair, unsigned *next)
{
	char *value = strchr(pair, ':');
	double n;
	if (!value)
		return is_wrong(key, pair, "a list is like [256:1,512:2,>:8]");
	*value++ = 0;
	int e = read_number(key, value, 0, 1 << 20, &n);
	uint64_t size = strtoull(pair, NULL, 10);
	unsigned at = size ? 63 - (unsigned)__builtin_clzll(size) : 0;
	if (e || (strcmp(pair, ">") && (!is_power(size) || at >= ROUNDUP_INTERVALS)) ||
	    (n > 0 && !is_power((uint64_t)n)))
		return e ? e : is_wrong(key, pair, "sizes and divisions are powers of two");
	const bool beyond = *pair == '>';
	const unsigned begin = beyond  ? *next - (w->settings->old_lists && *next)
			       : *next ? at
				       : 0,
		       end = beyond ? ROUNDUP_INTERVALS : at + 1;
	for (unsigned i = begin; i < end; i++)
		w->settings->divisions[i] = (uint32_t)n;
	*next = end;
	return 0;
}

static int set_divisions(const struct words *w, const char *key, char *value)
{
	double n;
	int e = 0;
	unsigned next = 0;
	if (*value != '[') {
		e = read_number(key, value, 0, 1 << 20, &n);
		if (!e && n > 0 && !is_power((uint64_t)n))
			e = is_wrong(key, value, "a power of two");
		for (unsigned i = 0; i < ROUNDUP_INTERVALS && !e; i++)
			w->settings->divisions[i] = (uint32_t)n;
		return e;
	}
	memset(w->settings->divisions, 0, sizeof(w->settings->divisions));
	value[strcspn(value, "]")] = 0;
	for (char *rest = value + 1, *pair; !e && (pair = strsep(&rest, ","));)
		e = set_interval(w, key, pair, &next);
	return e;
}

static int set_backend(const struct words *w, const char *key, char *value)
{
	return w->strict && strcmp(value, "native") ? is_wrong(key, value, "only the native allocator is modelled") : 0;
}

static const struct {
	const char *key;
	int (*set)(const struct words *w, const char *key, char *value); /* NULL: blocks lie where they lay */
} keys[] = {
	{ "expandable_segments", set_expandable },
	{ "max_split_size_mb", set_max_split },
	{ "roundup_power2_divisions", set_divisions },
	{ "garbage_collection_threshold", set_threshold },
	{ "per_process_memory_fraction", set_fraction },
	{ "large_segment_size_mb", set_segment },
	{ "max_non_split_rounding_mb", set_rounding },
	{ "backend", set_backend },
	{ "page_size", set_huge },
	{ "segment_size_mb", set_page },
	{ "base_addr_aligned_kb", set_alignment },
	{ "release_lock_on_cudamalloc", NULL },
	{ "release_lock_on_hipmalloc", NULL },
	{ "throw_on_cudamalloc_oom", NULL },
	{ "pinned_use_cuda_host_register", NULL },
	{ "pinned_use_hip_host_register", NULL },
	{ "pinned_use_background_threads", NULL },
	{ "pinned_num_register_threads", NULL },
	{ "pinned_reserve_segment_size_mb", NULL },
	{ "pinned_max_cached_size_mb", NULL },
	{ "pinned_max_round_threshold_mb", NULL },
	{ "pinned_free_catch_all", NULL },
};

/* All that make a difference. The caller's to free; NULL where there is no memory. */
static char *known_keys(void)
{
	char *all = NULL;
	for (size_t i = 0; i < sizeof(keys) / sizeof(keys[0]) && keys[i].set; i++) {
		char *more = output_format("%s%s%s", all ? all : "", all ? ", " : "", keys[i].key);
		free(all);
		all = more;
	}
	return all;
}

static int unknown_word(const char *word)
{
	char *known = known_keys();
	int e = error_set(MT_EUSAGE, "--alloc-conf", ERROR_NO_OFFSET, "'%s' is not known; known are %s", word,
			  known ? known : "");
	free(known);
	return e;
}

static int set_word(const struct words *w, char *word)
{
	char *value = strchr(word, ':');
	if (!value)
		return w->strict ? error_set(MT_EUSAGE, "--alloc-conf", ERROR_NO_OFFSET,
					     "%s: a setting is like expandable_segments:True", word)
				 : 0;
	*value++ = 0;
	for (size_t i = 0; i < sizeof(keys) / sizeof(keys[0]); i++)
		if (!strcmp(word, keys[i].key))
			return keys[i].set ? keys[i].set(w, word, value) : 0;
	return w->strict ? unknown_word(word) : 0;
}

/* Where the next word begins: behind a comma that isn't in a list. Ends this one. */
static char *end_word(char *word)
{
	int depth = 0;
	for (; *word; word++) {
		depth += (*word == '[') - (*word == ']');
		if (*word == ',' && !depth) {
			*word = 0;
			return word + 1;
		}
	}
	return NULL;
}

int replay_settings(struct cuda_pool_settings *s, const char *text, uint64_t device_bytes, bool strict)
{
	const struct words w = { s, device_bytes, strict };
	char *copy = strdup(text);
	int e = !copy ? error_memory() : strict && !text[strspn(text, " ,")] ? unknown_word(text) : 0;
	for (char *word = copy, *next; word && !e; word = next) {
		next = end_word(word);
		word += strspn(word, " ");
		e = *word ? set_word(&w, word) : 0;
	}
	free(copy);
	return e;
}

bool replay_same_settings(const struct cuda_pool_settings *a, const struct cuda_pool_settings *b)
{
	for (unsigned i = 0; i < ROUNDUP_INTERVALS; i++)
		if ((a->divisions[i] > 1 || b->divisions[i] > 1) && a->divisions[i] != b->divisions[i])
			return false;
	return a->expandable == b->expandable && a->huge_pages == b->huge_pages && a->aligned == b->aligned &&
	       a->most_rounding == b->most_rounding && a->large_segment == b->large_segment &&
	       a->large_page == b->large_page && a->max_split_bytes == b->max_split_bytes &&
	       a->allowed_bytes == b->allowed_bytes && (a->gc_threshold <= 0) == (b->gc_threshold <= 0) &&
	       (a->gc_threshold <= 0 || a->gc_threshold == b->gc_threshold);
}
