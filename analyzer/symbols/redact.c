#include "analyzer/symbols/redact.h"

#include "analyzer/symbols/categories.h"
#include "analyzer/util/vec.h"
#include "format/output_name.h"

#include <ctype.h>
#include <fcntl.h>
#include <fnmatch.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>
#include <uthash.h>

enum { HASH_DIGITS = 10 };

/* ---- what stays ---------------------------------------------------------------------------------------------- */

static const char *const patterns[] = {
#define RULE(class, what, pattern) pattern,
#include "analyzer/symbols/categories.def"
#include "analyzer/symbols/frame_rules.def"
#undef RULE
#define BENIGN(what, pattern, why) pattern,
#include "analyzer/symbols/builtin_suppressions.def"
#undef BENIGN
#define KEEP(pattern) pattern,
#define LIBRARY(pattern)
#define PACKAGE(name)
#define OPTION(prefix)
#define VARIABLE(pattern)
#include "analyzer/symbols/redact.def"
#undef KEEP
#undef LIBRARY
#define KEEP(pattern)
};

static const char *const libraries[] = {
#define LIBRARY(pattern) pattern,
#include "analyzer/symbols/redact.def"
#undef LIBRARY
#define LIBRARY(pattern)
	NULL
};

static const char *const packages[] = {
#undef PACKAGE
#define PACKAGE(name) name,
#include "analyzer/symbols/redact.def"
#undef PACKAGE
#define PACKAGE(name)
	NULL
};

static const char *const options[] = {
#undef OPTION
#define OPTION(prefix) prefix,
#include "analyzer/symbols/redact.def"
#undef OPTION
#define OPTION(prefix)
	NULL
};

static const char *const variables[] = {
#undef VARIABLE
#define VARIABLE(pattern) pattern,
#include "analyzer/symbols/redact.def"
	NULL
};

/* A word of a pattern. before, after: more of a word may stand there, since the pattern has a * there. */
struct piece {
	const char *text;
	size_t length;
	bool before, after;
};

struct answer {
	UT_hash_handle hh;
	const char *result;
	char key[]; /* kind, text, NUL; then the result */
};

struct redact {
	uint64_t key[2];
	struct piece *pieces; /* by their first byte, longer ones first */
	size_t count, room;
	uint32_t first[257];
	struct answer *answers;
};

static bool is_word(char c)
{
	return isalnum((unsigned char)c) || c == '_' || (unsigned char)c >= 0x80;
}

static size_t word_length(const char *text)
{
	size_t n = 0;
	while (is_word(text[n]))
		n++;
	return n;
}

static bool is_wild(char c)
{
	return c == '*' || c == '?' || c == ']' || c == '[';
}

static int add_pieces(struct redact *r, const char *pattern)
{
	int e = 0;
	for (const char *at = pattern; !e && *at;) {
		size_t n = word_length(at);
		if (*at == '[' && strchr(at, ']')) { /* any of these, no words */
			at = strchr(at, ']');
			continue;
		}
		if (n && (e = vec_reserve(r->pieces, r->room, r->count + 1)) == 0)
			r->pieces[r->count++] =
				(struct piece){ at, n, at > pattern && is_wild(at[-1]), is_wild(at[n]) };
		at += n ? n : 1;
	}
	return e;
}

static int compare_pieces(const void *a, const void *b)
{
	const struct piece *x = a, *y = b;
	if (*x->text != *y->text)
		return (unsigned char)*x->text < (unsigned char)*y->text ? -1 : 1;
	return (x->length < y->length) - (x->length > y->length);
}

static int make_pieces(struct redact *r)
{
	int e = 0;
	for (size_t i = 0; !e && i < sizeof(patterns) / sizeof(*patterns); i++)
		e = add_pieces(r, patterns[i]);
	if (e)
		return e;
	qsort(r->pieces, r->count, sizeof(*r->pieces), compare_pieces);
	for (size_t i = 0; i < r->count; i++)
		r->first[(unsigned char)*r->pieces[i].text + 1] = (uint32_t)i + 1;
	for (size_t c = 1; c < 257; c++)
		r->first[c] = r->first[c] ? r->first[c] : r->first[c - 1];
	return 0;
}

/* Whether what a * may stand for, next to this piece, may be kept apart: of two letters nothing is told. */
static bool fits(const struct piece *p, const char *word, size_t n, size_t at)
{
	bool inside = at || at + p->length < n;
	return p->length <= n - at && (p->before || !at) && (p->after || at + p->length == n) &&
	       (!inside || p->length > 2) && !memcmp(p->text, word + at, p->length);
}

/* How many bytes of the word, from there on, are public. */
static size_t kept_at(const struct redact *r, const char *word, size_t n, size_t at)
{
	unsigned char c = (unsigned char)word[at];
	for (uint32_t i = r->first[c]; i < r->first[c + 1]; i++)
		if (fits(&r->pieces[i], word, n, at))
			return r->pieces[i].length;
	return 0;
}

/* ---- SipHash-2-4 --------------------------------------------------------------------------------------------- */

static uint64_t rotate(uint64_t x, unsigned n)
{
	return x << n | x >> (64 - n);
}

static void sip_round(uint64_t v[4])
{
	v[0] += v[1], v[1] = rotate(v[1], 13) ^ v[0], v[0] = rotate(v[0], 32);
	v[2] += v[3], v[3] = rotate(v[3], 16) ^ v[2];
	v[0] += v[3], v[3] = rotate(v[3], 21) ^ v[0];
	v[2] += v[1], v[1] = rotate(v[1], 17) ^ v[2], v[2] = rotate(v[2], 32);
}

static uint64_t siphash(const uint64_t key[2], const void *from, size_t n)
{
	const unsigned char *at = from;
	uint64_t v[4] = { key[0] ^ 0x736f6d6570736575, key[1] ^ 0x646f72616e646f6d, key[0] ^ 0x6c7967656e657261,
			  key[1] ^ 0x7465646279746573 };
	for (size_t i = 0; i <= n / 8; i++) {
		uint64_t m = i == n / 8 ? (uint64_t)n << 56 : 0;
		for (size_t k = 0; k < 8 && i * 8 + k < n; k++)
			m |= (uint64_t)at[i * 8 + k] << 8 * k;
		v[3] ^= m;
		sip_round(v);
		sip_round(v);
		v[0] ^= m;
	}
	v[2] ^= 0xff;
	for (int i = 0; i < 4; i++)
		sip_round(v);
	return v[0] ^ v[1] ^ v[2] ^ v[3];
}

/* ---- words --------------------------------------------------------------------------------------------------- */

static bool is_number(const char *text, size_t n)
{
	size_t digits = 0;
	while (digits < n && isdigit((unsigned char)text[digits]))
		digits++;
	return digits && (digits == n || (digits + 1 == n && strchr("kKmMgGtT", text[digits])));
}

static void put_hash(const struct redact *r, FILE *to, const char *word, size_t n, size_t part)
{
	uint64_t key[2] = { r->key[0], r->key[1] ^ part };
	fprintf(to, "x%0*llx", (int)HASH_DIGITS,
		(unsigned long long)(siphash(key, word, n) & ((1ull << 4 * HASH_DIGITS) - 1)));
}

/* Of a word with public parts each of the others has a hash of the whole: parts alone would be few. */
static void put_word(const struct redact *r, FILE *to, const char *word, size_t n, bool numbers)
{
	size_t from = 0, at = 0;
	if (numbers && is_number(word, n)) {
		fwrite(word, 1, n, to);
		return;
	}
	while (at <= n) {
		size_t kept = at < n ? kept_at(r, word, n, at) : 0;
		if (!kept && at < n) {
			at++;
			continue;
		}
		if (at > from && numbers && is_number(word + from, at - from))
			fwrite(word + from, 1, at - from, to);
		else if (at > from)
			put_hash(r, to, word, n, from);
		fwrite(word + at, 1, kept, to);
		at += kept;
		from = at;
		if (at == n)
			break;
	}
}

/* Where IPython or ipykernel name the file of a cell by a hash of its code, which tells whoever guesses the code. */
static const char *code_hash(const char *text)
{
	static const char *const names[] = { "ipykernel_%*u/%n", "ipython-input-%*u-%n" };
	int end = 0;
	for (size_t i = 0; i < sizeof(names) / sizeof(*names); i++) {
		const char *at = strstr(text, i ? "ipython-" : "ipykernel_");
		if (at && sscanf(at, names[i], &end) == 0 && end)
			return at + end;
	}
	return NULL;
}

static void put_words(const struct redact *r, FILE *to, const char *text, size_t n, bool numbers)
{
	const char *hash = code_hash(text);
	for (const char *at = text, *end = text + n; at < end;) {
		size_t length = word_length(at);
		length = length < (size_t)(end - at) ? length : (size_t)(end - at);
		if (length)
			put_word(r, to, at, length, numbers && at != hash);
		else
			fputc(*at, to);
		at += length ? length : 1;
	}
}

/* ---- paths --------------------------------------------------------------------------------------------------- */

static bool is_listed(const char *const *list, const char *name)
{
	while (*list && fnmatch(*list, name, 0))
		list++;
	return *list != NULL;
}

static bool is_package(const char *name)
{
	size_t n = word_length(name);
	for (const char *const *p = packages; *p; p++)
		if (strlen(*p) == n && !strncmp(*p, name, n) && (name[n] == '/' || name[n] == '.' || !name[n]))
			return true;
	return false;
}

/* Python's own modules: behind lib/python3.N/. */
static const char *behind_python(const char *path)
{
	const char *at = strstr(path, "/lib/python3.");
	at = at ? at : strstr(path, "/lib64/python3.");
	return at ? strchr(at + sizeof("/lib64") - 1, '/') : NULL;
}

/* The part of a path that everybody's has; at its NUL if there is none. */
static const char *public_tail(const char *path)
{
	const char *slash = strrchr(path, '/'), *name = slash ? slash + 1 : path, *packages_at = NULL;
	for (const char *at = path; (at = strstr(at, "-packages/")) != NULL;)
		packages_at = at += sizeof("-packages/") - 1;
	if (!strncmp(path, "<frozen ", 8))
		return path;
	if (packages_at && is_package(packages_at))
		return packages_at;
	const char *python = packages_at ? NULL : behind_python(path);
	if (python)
		return python;
	return is_listed(libraries, name) ? name : path + strlen(path);
}

bool redact_is_known(const char *path)
{
	return path && *public_tail(path);
}

/* ---- interface ------------------------------------------------------------------------------------------------ */

static bool keeps_number(const char *argument)
{
	for (const char *const *o = options; *o; o++) {
		size_t n = strlen(*o);
		if (!strncmp(argument, *o, n) && is_number(argument + n, strlen(argument + n)))
			return true;
	}
	return false;
}

/* What a device's id is of is public: GPU-... */
static void put_whole(const struct redact *r, FILE *to, const char *text, size_t n)
{
	size_t kept = strspn(text, "ABCDEFGHIJKLMNOPQRSTUVWXYZ") == 3 && text[3] == '-' ? 4 : 0;
	fwrite(text, 1, kept, to);
	if (n > kept)
		put_hash(r, to, text, n, 0);
}

static void put(const struct redact *r, FILE *to, enum redact_kind kind, const char *text)
{
	size_t n = strlen(text);
	const char *tail = kind == REDACT_PATH ? public_tail(text) : text + n;
	if (kind == REDACT_ARGUMENT && keeps_number(text))
		fputs(text, to);
	else if (n && (kind == REDACT_WHOLE || (kind == REDACT_ARGUMENT && strchr(text, ' '))))
		put_whole(r, to, text, n);
	else
		put_words(r, to, text, (size_t)(tail - text), kind != REDACT_ARGUMENT);
	fputs(tail, to);
}

static const char *keep_answer(struct redact *r, const char *key, size_t n, const char *result)
{
	size_t bytes = strlen(result) + 1;
	struct answer *a = malloc(sizeof(*a) + n + bytes);
	if (!a)
		return NULL;
	memcpy(a->key, key, n);
	a->result = memcpy(a->key + n, result, bytes);
	HASH_ADD_KEYPTR(hh, r->answers, a->key, n, a);
	return a->result;
}

const char *redact(struct redact *r, enum redact_kind kind, const char *text)
{
	struct answer *a = NULL;
	char *key = NULL, *result = NULL;
	size_t bytes = 0;
	int n = text ? asprintf(&key, "%c%s", '0' + (int)kind, text) : -1;
	if (n < 0)
		return NULL;
	HASH_FIND(hh, r->answers, key, (size_t)n + 1, a);
	FILE *to = a ? NULL : open_memstream(&result, &bytes);
	if (to) {
		put(r, to, kind, text);
		bool whole = !ferror(to);
		whole = fclose(to) == 0 && whole;
		text = whole ? keep_answer(r, key, (size_t)n + 1, result) : NULL;
		free(result);
	}
	free(key);
	return a ? a->result : to ? text : NULL;
}

const char *redact_function(struct redact *r, const char *function, const char *from)
{
	return redact_is_known(from) ? function : redact(r, REDACT_TEXT, function);
}

const char *redact_source(struct redact *r, const char *file, const char *library)
{
	bool relative = file && *file != '/';
	return relative && redact_is_known(library) ? file : redact(r, REDACT_PATH, file);
}

const char *redact_variable(struct redact *r, const char *setting)
{
	const char *value = strchr(setting, '=');
	enum redact_kind kind = !strncmp(setting, "LD_PRELOAD=", 11) ? REDACT_PATH : REDACT_TEXT;
	char *text = NULL;
	if (is_listed(variables, setting) || !value)
		return setting;
	for (const char *const *job = mt_job_variables; *job; job++)
		if (!strncmp(setting, *job, strlen(*job)) && strlen(*job) == (size_t)(value - setting))
			kind = REDACT_WHOLE;
	value = redact(r, kind, value + 1);
	int n = value ? asprintf(&text, "%.*s%s", (int)(strchr(setting, '=') + 1 - setting), setting, value) : -1;
	const char *result = n < 0 ? NULL : keep_answer(r, text, (size_t)n + 1, text);
	free(text);
	return result;
}

void redact_build_id(const struct redact *r, const char *library, void *build_id, size_t n)
{
	unsigned char *to = build_id;
	uint64_t all = siphash(r->key, build_id, n);
	for (size_t i = 0; !redact_is_known(library) && i < n; i++)
		to[i] = (unsigned char)siphash((uint64_t[2]){ all, i }, r->key, sizeof(r->key));
}

/* Not by getrandom(): wheels are for glibc 2.17, too. */
static bool make_random_key(struct redact *r)
{
	int fd = open("/dev/urandom", O_RDONLY | O_CLOEXEC);
	bool filled = fd >= 0 && read(fd, r->key, sizeof(r->key)) == sizeof(r->key);
	if (fd >= 0)
		close(fd);
	return filled;
}

static bool make_key(struct redact *r, const char *salt)
{
	static const uint64_t fixed[2][2] = { { 1, 2 }, { 3, 4 } };
	if (!salt)
		return make_random_key(r);
	for (int i = 0; i < 2; i++)
		r->key[i] = siphash(fixed[i], salt, strlen(salt));
	return true;
}

struct redact *redact_new(const char *salt)
{
	struct redact *r = calloc(1, sizeof(*r));
	if (r && make_key(r, salt) && !make_pieces(r))
		return r;
	redact_free(r);
	return NULL;
}

void redact_free(struct redact *r)
{
	struct answer *a, *next;
	if (!r)
		return;
	HASH_ITER(hh, r->answers, a, next)
	{
		HASH_DEL(r->answers, a);
		free(a);
	}
	free(r->pieces);
	free(r);
}
