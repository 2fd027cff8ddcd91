#include "analyzer/report/ci/ci.h"

#include "analyzer/util/error.h"

#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static const struct ci_format *const formats[] = {
#define CI_FORMAT(format) &ci_##format,
#include "analyzer/report/ci/ci.def"
#undef CI_FORMAT
};

const struct ci_format *ci_find(const char *name)
{
	for (size_t i = 0; i < sizeof(formats) / sizeof(*formats); i++)
		if (!strcmp(formats[i]->name, name))
			return formats[i];
	return NULL;
}

int ci_init(struct ci *ci, const char *command, const char *name, bool json)
{
	*ci = (struct ci){ .command = command };
	if (!name)
		return 0;
	ci->format = ci_find(name);
	if (!ci->format)
		return error_set(MT_EUSAGE, "--format", ERROR_NO_OFFSET,
				 "unknown value '%s'; there are github, sarif and junit", name);
	return json ? error_set(MT_EUSAGE, "--format", ERROR_NO_OFFSET, "not with --json") : 0;
}

/* CI systems know files by their paths in the repository, in which the command is run. */
static char *relative(const char *file)
{
	char here[PATH_MAX];
	size_t n = getcwd(here, sizeof(here)) ? strlen(here) : 0;
	return strdup(n > 1 && !strncmp(file, here, n) && file[n] == '/' ? file + n + 1 : file);
}

void ci_add(struct ci *ci, bool fails, const char *rule, char *text, const char *file, uint32_t line)
{
	struct ci_finding *more = ci->format && text ? realloc(ci->findings, (ci->count + 1) * sizeof(*more)) : NULL;
	char *own = more ? strdup(rule) : NULL;
	if (more)
		ci->findings = more;
	if (own)
		ci->findings[ci->count++] =
			(struct ci_finding){ own, text, file && *file && line ? relative(file) : NULL, line, fails };
	else
		free(text);
}

int ci_finish(struct ci *ci)
{
	if (ci->format)
		ci->format->print(ci);
	ci_fini(ci);
	return 0;
}

void ci_fini(struct ci *ci)
{
	for (size_t i = 0; i < ci->count; i++) {
		free(ci->findings[i].rule);
		free(ci->findings[i].text);
		free(ci->findings[i].file);
	}
	free(ci->findings);
	ci->findings = NULL;
	ci->count = 0;
}
