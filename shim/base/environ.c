#include <string.h>
#include <unistd.h>

#include "shim/base/environ.h"
#include "shim/base/sys.h"

#define MORE 8 /* entries to come */

/* NULL until the loader has relocated us. The C library has no environment at that time either. */
static char ***volatile environment = &environ;

static const char *given;

void mt_environ_give(const char *settings)
{
	given = settings;
}

static char *find_given(const char *name)
{
	size_t n = strlen(name);

	for (const char *s = given; s && *s; s += strlen(s) + 1)
		if (!strncmp(s, name, n) && s[n] == '=')
			return (char *)(uintptr_t)s + n + 1;
	return NULL;
}

char *mt_environ_get(const char *name)
{
	char ***where = environment, **e = where ? *where : NULL, *entry;
	size_t n;

	if (given && *name && (entry = find_given(name)) != NULL)
		return entry;
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

#define MOST 32

/* Entries that were set: `text` is ours; `old` is what the name had, or NULL. */
static struct change {
	char *text, *old;
	size_t name_bytes;
} changes[MOST];
static size_t change_count;

static void put(struct change *c)
{
	size_t count = entries();
	char name[64], **at;

	memcpy(name, c->text, c->name_bytes);
	name[c->name_bytes] = 0;
	at = find(name);
	if (at && *at) {
		c->old = *at;
		*at = c->text;
	} else if (make_room(count)) {
		c->old = NULL;
		environ[count + 1] = NULL;
		environ[count] = c->text;
	}
}

void mt_environ_set(const char *name, const char *value)
{
	size_t name_bytes = strlen(name), value_bytes = strlen(value) + 1;
	char *text = change_count < MOST && name_bytes < 64 ? mt_sys_pages(name_bytes + 1 + value_bytes) : NULL;

	if (!text)
		return;
	memcpy(text, name, name_bytes);
	text[name_bytes] = '=';
	memcpy(text + name_bytes + 1, value, value_bytes);
	changes[change_count] = (struct change){ text, NULL, name_bytes };
	put(&changes[change_count++]);
}

static void take_out(char **at)
{
	do
		at[0] = at[1];
	while (*at++);
}

/* The last first: a name may have been set twice. */
void mt_environ_undo(void)
{
	for (size_t i = change_count; i-- > 0;) {
		char **e = environ;
		while (e && *e && *e != changes[i].text)
			e++;
		if (e && *e && changes[i].old)
			*e = changes[i].old;
		else if (e && *e)
			take_out(e);
	}
}

void mt_environ_redo(void)
{
	for (size_t i = 0; i < change_count; i++)
		put(&changes[i]);
}
