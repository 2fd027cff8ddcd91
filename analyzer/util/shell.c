#include "analyzer/util/shell.h"

#include "format/text.h"

#include <ctype.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Would somebody else's characters be read, where quotes are no protection any more? */
static bool needs_numbers(const char *text)
{
	if (strpbrk(text, "*?[\\") || strstr(text, "  "))
		return true;
	for (struct mt_character c; *text; text += c.bytes) {
		c = mt_text_character(text);
		if (!mt_text_shows(c.code))
			return true;
	}
	return false;
}

static void put_numbers(FILE *f, const char *text)
{
	fprintf(f, "\"$(printf %%b '");
	for (; *text; text++)
		fprintf(f, isalnum((unsigned char)*text) || strchr("/._-", *text) ? "%c" : "\\0%03o",
			(unsigned char)*text);
	fprintf(f, "')\"");
}

static void put_quotes(FILE *f, const char *text)
{
	fputc('\'', f);
	for (; *text; text++) {
		if (*text == '\'')
			fputs("'\\'", f);
		fputc(*text, f);
	}
	fputc('\'', f);
}

char *shell_quoted(const char *text)
{
	char *word = NULL;
	size_t size;
	FILE *f = open_memstream(&word, &size);
	if (!f)
		return NULL;
	(needs_numbers(text) ? put_numbers : put_quotes)(f, text);
	fclose(f);
	return word;
}

char *shell_word(const char *text)
{
	static const char plain[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789/._-+:,@%";
	return *text && !text[strspn(text, plain)] ? strdup(text) : shell_quoted(text);
}
