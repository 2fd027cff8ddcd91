#include <stdbool.h>
#include <string.h>

#include "shim/base/elfsearch.h"
#include "shim/base/elfsym.h"
#include "shim/base/libc.h"

/* Modules that were there at the start; none of them ever goes, and later ones come behind. */
static uint32_t at_start;

static bool late; /* we came later ourselves: the C library is before us */

static int count(struct dl_phdr_info *info, size_t size, void *n)
{
	(void)info;
	(void)size;
	++*(uint32_t *)n;
	return 0;
}

struct search {
	enum mt_where where;
	const void *which;
	const char *name, *version;
	uint32_t index, own; /* counted from 1 */
	void *found;
};

static const char *file_of(const struct dl_phdr_info *info)
{
	const char *slash = strrchr(info->dlpi_name, '/');

	return slash ? slash + 1 : info->dlpi_name;
}

/* Whether the module may be asked: before its tables are looked for, which takes the most time of a start. */
static int may_be_there(const struct search *s, const struct dl_phdr_info *info)
{
	switch (s->where) {
	case MT_BEFORE:
		return !s->own;
	case MT_NEXT:
		return s->own && s->index <= at_start;
	case MT_PREFIX:
		return !strncmp(file_of(info), s->which, strlen(s->which));
	case MT_AROUND:
		return mt_symbols_segment(info, s->which) != NULL;
	case MT_NAMED: /* or its soname, which is in the tables */
	case MT_ANY:
		return 1;
	}
	return 0;
}

static int is_named(const struct search *s, const struct dl_phdr_info *info, const struct mt_symbols *symbols)
{
	return !strcmp(file_of(info), s->which) || (symbols->soname && !strcmp(symbols->soname, s->which));
}

static int visit(struct dl_phdr_info *info, size_t size, void *data)
{
	struct search *s = data;
	struct mt_symbols symbols;

	(void)size;
	s->index++;
	if (mt_symbols_segment(info, (const void *)(uintptr_t)visit))
		s->own = s->index;
	else if (may_be_there(s, info) && mt_symbols_of(info, &symbols) &&
		 (s->where != MT_NAMED || is_named(s, info, &symbols)))
		s->found = mt_symbols_find_version(&symbols, s->name, s->version);
	return s->found != NULL;
}

void *mt_symbols_search(enum mt_where where, const void *which, const char *name, const char *version)
{
	struct search s = {
		.where = where == MT_NEXT && late ? MT_ANY : where, .which = which, .name = name, .version = version
	};

	if (!at_start) {
		uint32_t n = 0;
		mt_libc()->dl_iterate_phdr(count, &n);
		at_start = n;
	}
	mt_libc()->dl_iterate_phdr(visit, &s);
	return s.found;
}

void mt_symbols_late(void)
{
	late = true;
}
