#include "analyzer/symbols/module/demangle.h"

#include <ctype.h>
#include <libiberty/demangle.h>
#include <setjmp.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

/* A demangled name can be exponentially longer than the symbol; nobody reads more than this. */
#define MAX_NAME 8192

static bool is_hex(const char *s, size_t n)
{
	for (size_t i = 0; i < n; i++)
		if (!isxdigit((unsigned char)s[i]))
			return false;
	return true;
}

/* Legacy Rust symbols are C++ ones that end in 17h and 16 digits of a hash. */
static bool is_legacy_rust(const char *symbol)
{
	const char *hash = strstr(symbol, "17h");
	while (hash && !(strlen(hash) >= 20 && is_hex(hash + 3, 16) && hash[19] == 'E'))
		hash = strstr(hash + 1, "17h");
	return hash != NULL;
}

const char *name_language(const char *symbol)
{
	if (strncmp(symbol, "_R", 2) == 0 && isalpha((unsigned char)symbol[2]))
		return "rust";
	if (strncmp(symbol, "_Z", 2) == 0)
		return is_legacy_rust(symbol) ? "rust" : "c++";
	return NULL;
}

struct demangling {
	jmp_buf full;
	size_t used;
	char text[MAX_NAME + 1];
};

/* The demangler hands its text out in pieces. It is left when there is enough of it: to go on could take hours, and
 * nothing that it has lies on the heap. */
static void take_piece(const char *piece, size_t n, void *opaque)
{
	struct demangling *d = opaque;
	size_t room = MAX_NAME - d->used;
	memcpy(d->text + d->used, piece, n < room ? n : room);
	d->used += n < room ? n : room;
	if (n > room)
		longjmp(d->full, 1);
}

static bool demangle(struct demangling *d, const char *symbol)
{
	const int flags = DMGL_PARAMS | DMGL_ANSI | DMGL_AUTO;
	if (setjmp(d->full) || rust_demangle_callback(symbol, flags, take_piece, d))
		return true;
	d->used = 0;
	return cplus_demangle_v3_callback(symbol, flags, take_piece, d);
}

char *name_demangle(const char *symbol)
{
	struct demangling d = { .used = 0 };
	return name_language(symbol) && demangle(&d, symbol) ? strndup(d.text, d.used) : NULL;
}

/*
 * Shortening is one pass that copies what stands outside brackets. What makes it more than that: `operator<`
 * and its kind aren't brackets; `(anonymous namespace)` and `operator()` are names; a lambda's parameters are
 * inside braces; and a return type is known to be one only when a space at the outermost level follows it.
 */
struct shortening {
	const char *in;
	char *out;
	size_t used;
	bool after_parameters; /* what comes next may be `const` */
};

static const char *const bracket_operators[] = {
	"()", "[]", "<<=", ">>=", "<=>", "->*", "<<", ">>", "<=", ">=", "->", "<", ">", NULL,
};

static bool is_word(char c)
{
	return isalnum((unsigned char)c) || c == '_' || c == '$';
}

static void append(struct shortening *s, const char *text, size_t n)
{
	memcpy(s->out + s->used, text, n);
	s->used += n;
}

/* Behind the bracket that closes the one at `s`, or the end of the text. */
static const char *skip_brackets(const char *s)
{
	int depth = 0;
	for (; *s; s++) {
		if (strchr("<([{", *s))
			depth++;
		else if (strchr(")]}", *s) || (*s == '>' && s[-1] != '-'))
			depth--;
		if (depth == 0)
			return s + 1;
	}
	return s;
}

/* "operator" and its symbol, or the type it converts to, are copied whole. */
static bool copy_operator(struct shortening *s)
{
	static const char word[] = "operator";
	size_t n = sizeof(word) - 1;
	if (strncmp(s->in, word, n) != 0 || is_word(s->in[n]) || (s->used && is_word(s->out[s->used - 1])))
		return false;
	size_t symbol = 0;
	for (size_t i = 0; bracket_operators[i] && !symbol; i++)
		if (strncmp(s->in + n, bracket_operators[i], strlen(bracket_operators[i])) == 0)
			symbol = strlen(bracket_operators[i]);
	n += symbol;
	if (!symbol && s->in[n] == ' ')
		n += strcspn(s->in + n, "(<");
	append(s, s->in, n);
	s->in += n;
	if (strncmp(s->in, " <", 2) == 0) /* operator<< <int> */
		s->in++;
	return true;
}

/* {lambda(int)#1} becomes {lambda#1}; {closure#0} and {{closure}} stay. */
static void copy_braces(struct shortening *s)
{
	const char *end = skip_brackets(s->in);
	while (s->in < end) {
		if (*s->in == '(' || *s->in == '<')
			s->in = skip_brackets(s->in);
		else
			append(s, s->in++, 1);
	}
}

static void copy_parentheses(struct shortening *s)
{
	static const char anonymous[] = "(anonymous namespace)";
	if (strncmp(s->in, anonymous, sizeof(anonymous) - 1) == 0)
		append(s, "(anon)", 6);
	else
		s->after_parameters = true;
	s->in = skip_brackets(s->in);
}

/* Angle brackets that begin a name are Rust's <Type as Trait>::f; elsewhere they are arguments. */
static void copy_angles(struct shortening *s)
{
	const char *end = skip_brackets(s->in);
	if (s->used == 0)
		append(s, s->in, (size_t)(end - s->in));
	else
		append(s, "<..>", 4);
	s->in = end;
}

static size_t qualifier_length(const char *s)
{
	static const char *const qualifiers[] = { "const", "volatile", "&&", "&", NULL };
	for (size_t i = 0; qualifiers[i]; i++) {
		size_t n = strlen(qualifiers[i]);
		if (strncmp(s, qualifiers[i], n) == 0 && !is_word(s[n]))
			return n;
	}
	return *s == '[' ? strlen(s) : 0; /* [clone .isra.0] */
}

/* What stands before a space is a return type, unless only qualifiers of a member function follow. */
static void copy_space(struct shortening *s)
{
	size_t n = qualifier_length(++s->in);
	if (s->after_parameters && n)
		s->in += n;
	else
		s->used = 0;
}

static void copy_next(struct shortening *s)
{
	switch (*s->in) {
	case ' ':
		copy_space(s);
		return;
	case '<':
		copy_angles(s);
		return;
	case '(':
		copy_parentheses(s);
		return;
	case '{':
		copy_braces(s);
		return;
	}
	if (copy_operator(s))
		return;
	s->after_parameters = false;
	append(s, s->in++, 1);
}

/* The compiler's variants of a C function: f.isra.0, f.cold. */
static void cut_clone_suffix(char *name)
{
	static const char *const suffixes[] = {
		".isra.", ".part.", ".constprop.", ".cold", ".lto_priv.", ".llvm.", ".localalias", NULL,
	};
	for (size_t i = 0; suffixes[i]; i++) {
		char *at = strstr(name, suffixes[i]);
		if (at && at > name)
			*at = '\0';
	}
}

char *name_shorten(const char *name)
{
	if (strncmp(name, "__GI_", 5) == 0) /* glibc's internal alias */
		name += 5;
	struct shortening s = { .in = name, .out = malloc(2 * strlen(name) + 8) }; /* <> becomes <..> */
	if (!s.out)
		return NULL;
	while (*s.in)
		copy_next(&s);
	if (s.used == 0) /* a function that returns a function pointer has all of itself in brackets */
		append(&s, name, strlen(name));
	s.out[s.used] = '\0';
	cut_clone_suffix(s.out);
	return s.out;
}
