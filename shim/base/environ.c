#include <string.h>
#include <unistd.h>

#include "shim/base/environ.h"
#include "shim/base/sys.h"

#define MORE 8 /* entries to come */

/* NULL until the loader has relocated us. The C library has no environment at that time either. */
static char ***volatile environment = &environ;

char *mt_environ_get(const char *name)
{
	char ***where = environment, **e = where ? *where : NULL, *entry;
	size_t n;

	if (!e || !*name)
		return NULL;
	/* each entry is read once: another thread may be taking it away */
	for (n = strlen(name); (entry = __atomic_load_n(e, __ATOMIC_RELAXED)) != NULL; e++)
		if (!strncmp(entry, name, n) && entry[n] == '=')
			return entry + n + 1;
	return NULL;
}

static char **array;
static size_t room;

static char **find(const char *name)
{
	size_t n = strlen(name);
	char **e = environ;

	while (e && *e && (strncmp(*e, name, n) != 0 || (*e)[n] != '='))
		e++;
	return e;
}

static size_t entries(void)
{
	size_t n = 0;

	while (environ && environ[n])
		n++;
	return n;
}

/* The C library takes what it has not made itself for the kernel's, and copies it when it must grow. */
static int make_room(size_t count)
{
	char **larger;

	if (environ == array && count + 1 < room)
		return 1;
	larger = mt_sys_pages((count + 1 + MORE) * sizeof(*larger));
	if (!larger)
		return 0;
	if (count)
		memcpy(larger, environ, count * sizeof(*larger));
	array = larger;
	room = count + 1 + MORE;
	environ = array;
	return 1;
}

void mt_environ_set(const char *name, const char *value)
{
	size_t name_bytes = strlen(name), value_bytes = strlen(value) + 1, count = entries();
	char *text = mt_sys_pages(name_bytes + 1 + value_bytes), **at = find(name);

	if (!text)
		return;
	memcpy(text, name, name_bytes);
	text[name_bytes] = '=';
	memcpy(text + name_bytes + 1, value, value_bytes);
	if (at && *at) {
		*at = text;
	} else if (make_room(count)) {
		environ[count] = text;
		environ[count + 1] = NULL;
	}
}
