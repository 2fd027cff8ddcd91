/* What a plugin's error says of memory that ran out. */
#include "format/fnv.h"
#include "shim/device/pjrt_internal.h"
#include "shim/trace/record.h"

/* ---- the bytes in the text ---- */

struct text {
	const char *at, *end;
};

static int is_digit(const struct text *t)
{
	return t->at < t->end && *t->at >= '0' && *t->at <= '9';
}

static int skip(struct text *t, const char *word)
{
	const char *p = t->at;

	while (*word && p < t->end && *p == *word) {
		p++;
		word++;
	}
	if (*word)
		return 0;
	t->at = p;
	return 1;
}

/* What a unit is in bytes; 0 = it is none. */
static uint64_t unit(struct text *t)
{
	static const char letters[] = "KMGT";
	uint64_t bytes = 1;

	skip(t, " ");
	if (skip(t, "bytes") || skip(t, "B"))
		return 1;
	for (const char *l = letters; *l; l++) {
		bytes <<= 10;
		if (t->at < t->end && *t->at == *l) {
			t->at++;
			return bytes;
		}
	}
	return 0;
}

/* "8589934592 bytes", "8.00GiB", "29.49G"; 0 = it is no number of bytes. *error: it is rounded by at most so many. */
static uint64_t number(struct text *t, uint64_t *error)
{
	uint64_t whole = 0, part = 0, scale = 1, size;

	for (; is_digit(t); t->at++)
		whole = whole < MT_MAX_SIZE / 10 ? whole * 10 + (uint64_t)(*t->at - '0') : MT_MAX_SIZE;
	if (skip(t, "."))
		for (; is_digit(t); t->at++)
			if (scale < 1000) {
				part = part * 10 + (uint64_t)(*t->at - '0');
				scale *= 10;
			}
	size = unit(t);
	*error = size > 1 ? size / (2 * scale) + 1 : 0;
	return size && whole <= MT_MAX_SIZE / size ? whole * size + part * size / scale : 0;
}

/* The first number of bytes behind "allocat" or "reserve". In "8.00GiB (8589934592B)" it is the second. */
static uint64_t bytes_in(struct text t, uint64_t *error)
{
	uint64_t bytes = 0, exact, rounded = 0;
	int behind = 0;

	while (t.at < t.end && !bytes) {
		if (behind && is_digit(&t)) {
			bytes = number(&t, &rounded);
			continue;
		}
		behind |= skip(&t, "allocat") || skip(&t, "reserve");
		t.at++;
	}
	*error = bytes ? rounded : 0;
	if (!bytes || !(skip(&t, "iB (") || skip(&t, " (")) || !is_digit(&t))
		return bytes;
	exact = number(&t, &rounded);
	*error = exact ? rounded : *error;
	return exact ? exact : bytes;
}

/* ---- errors ---- */

/* Error_Message returns nothing, so its result is not looked at. */
static struct text message_of(const struct mt_pjrt *api, void *error)
{
	pjrt_function *message = mt_pjrt_function(api, PJRT_Error_Message);
	struct pjrt_text *q = PJRT_ARGS(struct pjrt_text, .thing = error);

	if (message)
		message(q);
	return (struct text){ q->text, q->text ? q->text + q->bytes : NULL };
}

int mt_pjrt_exhausted(const struct mt_pjrt *api, void *error, struct mt_pjrt_exhausted *said)
{
	struct pjrt_one *q = PJRT_ARGS(struct pjrt_one, .thing = error);
	struct text text;
	int is;

	mt_record_mute(1);
	is = mt_pjrt_ask(api, PJRT_Error_GetCode, q) && q->out.number == PJRT_RESOURCE_EXHAUSTED;
	if (is) {
		text = message_of(api, error);
		said->bytes = bytes_in(text, &said->error);
		said->text = mt_fnv(MT_FNV_START, text.at, (size_t)(text.end - text.at));
	}
	mt_record_mute(0);
	return is;
}
