#include "analyzer/symbols/categories.h"

#include "analyzer/symbols/python_frames.h"
#include "analyzer/util/error.h"
#include "analyzer/util/hash_index.h"
#include "analyzer/util/vec.h"

#include <ctype.h>
#include <errno.h>
#include <fnmatch.h>
#include <stdio.h>

enum rule_what {
	RULE_AROUND,
	RULE_PYTHON,
	RULE_NATIVE,
	RULE_FILE,
	RULE_LIBRARY,
	RULE_THREAD,
	RULE_LIFETIME,
	RULE_WHATS
};

static const char *const whats[RULE_WHATS] = { "AROUND", "PYTHON", "NATIVE", "FILE", "LIBRARY", "THREAD", "LIFETIME" };

struct rule {
	enum category category;
	enum rule_what what;
	const char *pattern;
};

static const struct rule builtin[] = {
#define RULE(category, what, pattern) { CATEGORY_##category, RULE_##what, pattern },
#include "analyzer/symbols/categories.def"
#undef RULE
};

enum { BUILTIN = sizeof(builtin) / sizeof(*builtin) };

/* What is said of a function in a file of a library: many frames differ in their lines alone. Strings of frames are
 * interned. */
struct answer {
	const char *function, *file, *library;
	const struct rule *rule;
};

struct categories {
	struct stacks *stacks;
	struct rule *rules; /* the user's, then the built-in ones */
	size_t count, room;
	const struct rule *of_lifetime[LIFETIMES]; /* the first that holds; NULL = none */
	char *text;                                /* of the user's file; patterns point into it */
	struct answer *answers;
	size_t answer_count, answer_room;
	struct hash_index index; /* by frame: the answer + 1 */
};

const char *category_name(enum category c)
{
	static const char *const names[] = {
#define NAME(name) #name,
		CATEGORY_NAMES(NAME)
#undef NAME
	};
	return names[c];
}

/* CATEGORIES = there is none. */
static enum category category_named(const char *name, size_t length)
{
	int c = 0;
	while (c < CATEGORIES && (strlen(category_name(c)) != length || strncmp(category_name(c), name, length)))
		c++;
	return c;
}

enum category category_of_label(const char *label)
{
	return category_named(label, strcspn(label, ":"));
}

/* ---- the user's rules -------------------------------------------------------------------------------------- */

struct parser {
	const char *file;
	char *at;
	unsigned line;
};

static int bad(const struct parser *p, const char *why)
{
	return error_set(MT_EUSAGE, p->file, ERROR_NO_OFFSET,
			 "line %u: %s; RULE(category, WHAT, \"pattern\") is expected", p->line, why);
}

static void skip_blank(struct parser *p)
{
	for (;; p->at++) {
		if (*p->at == '#')
			p->at += strcspn(p->at, "\n");
		if (p->at[0] == '/' && p->at[1] == '*') {
			char *end = strstr(p->at + 2, "*/");
			for (const char *c = p->at; end && c < end; c++)
				p->line += *c == '\n';
			p->at = end ? end + 1 : p->at + strlen(p->at) - 1;
			continue;
		}
		if (!isspace((unsigned char)*p->at))
			return;
		p->line += *p->at == '\n';
	}
}

static char *word(struct parser *p, size_t *length)
{
	skip_blank(p);
	char *start = p->at;
	while (isalnum((unsigned char)*p->at) || *p->at == '_')
		p->at++;
	*length = (size_t)(p->at - start);
	return start;
}

static bool punctuation(struct parser *p, char c)
{
	skip_blank(p);
	if (*p->at != c)
		return false;
	p->at++;
	return true;
}

static enum rule_what what_named(const char *name, size_t length)
{
	int what = 0;
	while (what < RULE_WHATS && (strlen(whats[what]) != length || strncmp(whats[what], name, length)))
		what++;
	return what;
}

static int parse_rule(struct parser *p, struct rule *r)
{
	size_t length;
	char *text = word(p, &length);
	if (length != 4 || strncmp(text, "RULE", 4) || !punctuation(p, '('))
		return bad(p, "this is no rule");
	text = word(p, &length);
	r->category = category_named(text, length);
	if (r->category == CATEGORIES || !punctuation(p, ','))
		return bad(p, "there is no such category");
	text = word(p, &length);
	r->what = what_named(text, length);
	if (r->what == RULE_WHATS || !punctuation(p, ','))
		return bad(p, "WHAT is AROUND, PYTHON, NATIVE, FILE, LIBRARY, THREAD or LIFETIME");
	if (!punctuation(p, '"'))
		return bad(p, "the pattern stands in quotes");
	r->pattern = p->at;
	p->at += strcspn(p->at, "\"\n");
	if (*p->at != '"')
		return bad(p, "the pattern's quote is not closed");
	*p->at++ = 0;
	return punctuation(p, ')') ? 0 : bad(p, "a parenthesis is missing");
}

static int parse_rules(struct categories *c, const char *file)
{
	struct parser p = { .file = file, .at = c->text, .line = 1 };
	for (skip_blank(&p); *p.at; skip_blank(&p)) {
		struct rule r;
		int e = parse_rule(&p, &r);
		if (e == 0)
			e = vec_reserve(c->rules, c->room, c->count + 1);
		if (e < 0)
			return e;
		c->rules[c->count++] = r;
	}
	return 0;
}

static int read_rules(struct categories *c, const char *file)
{
	FILE *f = fopen(file, "re");
	size_t room = 0, length = 0;
	if (!f)
		return error_set(MT_EUSAGE, file, ERROR_NO_OFFSET, "rules: %s", strerror(errno));
	ssize_t n = getdelim(&c->text, &room, 0, f);
	length = n > 0 ? (size_t)n : 0;
	fclose(f);
	if (length == 0)
		return c->text ? (c->text[0] = 0, 0) : 0;
	return parse_rules(c, file);
}

/* ---- asking ------------------------------------------------------------------------------------------------ */

static const char *subject(const struct frame *f, enum rule_what what, char *buffer, size_t size)
{
	bool python = python_is_frame(f), native = !python && !python_thread(f);
	switch (what) {
	case RULE_PYTHON:
		if (!python)
			return NULL;
		snprintf(buffer, size, "%s:%s", f->file ? f->file : "", f->function ? f->function : "");
		return buffer;
	case RULE_NATIVE:
		return native ? f->name : NULL;
	case RULE_FILE:
		return python || native ? f->file : NULL;
	case RULE_LIBRARY:
		return native ? f->library : NULL;
	case RULE_THREAD:
		return python_thread(f);
	default:
		return NULL;
	}
}

static const struct rule *rule_of(const struct categories *c, const struct frame *f)
{
	char buffer[1024];
	const char *texts[RULE_WHATS];
	for (int what = 0; what < RULE_WHATS; what++)
		texts[what] = subject(f, what, buffer, sizeof(buffer));
	for (size_t i = 0; i < c->count; i++) {
		const char *text = texts[c->rules[i].what];
		if (text && fnmatch(c->rules[i].pattern, text, 0) == 0)
			return &c->rules[i];
	}
	return NULL;
}

/* Few: they are asked of every frame. */
static const void *ask_around(void *arg, const struct frame *f)
{
	const struct categories *c = arg;
	char buffer[1024];
	const char *text = python_is_frame(f) ? subject(f, RULE_PYTHON, buffer, sizeof(buffer)) : f->name;
	for (size_t i = 0; text && i < c->count; i++)
		if (c->rules[i].what == RULE_AROUND && fnmatch(c->rules[i].pattern, text, 0) == 0)
			return &c->rules[i];
	return NULL;
}

static uint64_t hash_words(const void *function, const void *file, const void *library)
{
	uint64_t h =
		(uintptr_t)function * 0x9e3779b97f4a7c15u ^ (uintptr_t)file * 0xc2b2ae3d27d4eb4fu ^ (uintptr_t)library;
	return (h ^ h >> 29) * 0xbf58476d1ce4e5b9u;
}

static uint64_t hash_of_answer(const void *answers, uint32_t number)
{
	const struct answer *a = (const struct answer *)answers + number - 1;
	return hash_words(a->function, a->file, a->library);
}

static bool has_room(struct categories *c)
{
	if (hash_index_is_full(&c->index, c->answer_count) &&
	    hash_index_grow(&c->index, c->answers, c->answer_count, hash_of_answer))
		return false;
	return vec_reserve_raw(c->answers, c->answer_room, c->answer_count + 1) == 0;
}

static const void *ask_frame(void *arg, const struct frame *f)
{
	struct categories *c = arg;
	if (!f->function && !f->file && !f->library)
		return NULL;
	if (!has_room(c))
		return rule_of(c, f);
	uint64_t hash = hash_words(f->function, f->file, f->library);
	size_t at = hash_index_home(&c->index, hash);
	for (uint32_t n; (n = hash_index_candidate(&c->index, hash, &at)); at = hash_index_after(&c->index, at)) {
		const struct answer *a = &c->answers[n - 1];
		if (a->function == f->function && a->file == f->file && a->library == f->library)
			return a->rule;
	}
	const void *rule = rule_of(c, f);
	c->answers[c->answer_count++] = (struct answer){ f->function, f->file, f->library, rule };
	hash_index_set(&c->index, at, c->answer_count, hash);
	return rule;
}

static enum category by_lifetime(const struct categories *c, enum lifetime lifetime)
{
	return c->of_lifetime[lifetime] ? c->of_lifetime[lifetime]->category : CATEGORY_unknown;
}

/* From the inside: native frames up to the interpreter, Python's, and then the native ones around it. */
enum category categories_of(struct categories *c, uint32_t stack, enum lifetime lifetime)
{
	const struct rule *r = stacks_ask(c->stacks, stack, MEMO_AROUND, PART_NATIVE, ask_around, c);
	if (!r)
		r = stacks_ask(c->stacks, stack, MEMO_AROUND_PYTHON, PART_PYTHON, ask_around, c);
	if (!r)
		r = stacks_ask(c->stacks, stack, MEMO_INNER, PART_INNER, ask_frame, c);
	if (!r)
		r = stacks_ask(c->stacks, stack, MEMO_PYTHON, PART_PYTHON, ask_frame, c);
	if (!r)
		r = stacks_ask(c->stacks, stack, MEMO_NATIVE, PART_NATIVE, ask_frame, c);
	return r ? r->category : by_lifetime(c, lifetime);
}

/* They are few, and asked of every site. */
static void find_lifetimes(struct categories *c)
{
	static const char *const names[LIFETIMES] = { NULL, "setup", "first_step", "step" };
	for (unsigned k = LIFETIME_UNKNOWN + 1; k < LIFETIMES; k++)
		for (size_t i = 0; i < c->count && !c->of_lifetime[k]; i++)
			if (c->rules[i].what == RULE_LIFETIME && fnmatch(c->rules[i].pattern, names[k], 0) == 0)
				c->of_lifetime[k] = &c->rules[i];
}

int categories_new(struct categories **out, struct stacks *s, const char *rules_file)
{
	struct categories *c = calloc(1, sizeof(*c));
	int e = c ? 0 : error_memory();
	if (e == 0 && rules_file)
		e = read_rules(c, rules_file);
	if (e == 0)
		e = vec_reserve(c->rules, c->room, c->count + BUILTIN);
	if (e < 0) {
		categories_free(c);
		return e;
	}
	memcpy(c->rules + c->count, builtin, sizeof(builtin));
	c->count += BUILTIN;
	c->stacks = s;
	find_lifetimes(c);
	*out = c;
	return 0;
}

void categories_free(struct categories *c)
{
	if (!c)
		return;
	free(c->answers);
	hash_index_fini(&c->index);
	free(c->rules);
	free(c->text);
	free(c);
}
