#include "analyzer/util/suggest.h"

#include <string.h>

enum { LONGEST = 40 };

static size_t least(size_t a, size_t b)
{
	return a < b ? a : b;
}

/* How many letters must be put in, taken out, replaced, or swapped with the next to make b of a. */
static size_t distance(const char *a, const char *b)
{
	size_t n = strlen(a), m = strlen(b), rows[3][LONGEST + 1];
	size_t *before = rows[0], *last = rows[1], *now = rows[2];
	for (size_t k = 0; k <= m; k++)
		last[k] = before[k] = k;
	for (size_t i = 1; i <= n; i++) {
		now[0] = i;
		for (size_t k = 1; k <= m; k++) {
			now[k] = least(least(now[k - 1], last[k]) + 1, last[k - 1] + (a[i - 1] != b[k - 1]));
			if (i > 1 && k > 1 && a[i - 1] == b[k - 2] && a[i - 2] == b[k - 1])
				now[k] = least(now[k], before[k - 2] + 1);
		}
		size_t *free_row = before;
		before = last;
		last = now;
		now = free_row;
	}
	return last[m];
}

void suggest(struct suggestion *s, const char *word)
{
	size_t typed = strlen(s->text), length = strlen(word);
	if (!typed || typed > LONGEST || length > LONGEST)
		return;
	bool begins = typed >= 2 && typed < length && !strncmp(s->text, word, typed);
	size_t d = begins ? 0 : distance(s->text, word), most = ((typed > length ? typed : length) + 2) / 3;
	if (d > most || d >= least(typed, length) || (s->best && d >= s->distance))
		return;
	s->best = word;
	s->distance = d;
}
