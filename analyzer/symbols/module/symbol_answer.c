#include "analyzer/symbols/module/symbol_answer.h"

#include "format/format.h"

#include <string.h>
#include <sys/stat.h>

static void put_number(FILE *to, uint64_t value)
{
	uint8_t varint[VARINT_MAX];
	fwrite(varint, (size_t)(varint_put(varint, value) - varint), 1, to);
}

static void put_text(FILE *to, const char *text)
{
	size_t n = text ? strlen(text) + 1 : 0;
	put_number(to, n);
	fwrite(text ? text : "", n, 1, to);
}

bool symbol_opened_is_unchanged(const struct symbol_opened *o)
{
	struct stat st;
	if (stat(o->path, &st) || !S_ISREG(st.st_mode))
		return o->size_and_1 == 0;
	uint64_t written_ns = (uint64_t)st.st_mtim.tv_sec * 1000000000u + (uint64_t)st.st_mtim.tv_nsec;
	return o->size_and_1 == (uint64_t)st.st_size + 1 && o->written_ns == written_ns;
}

void symbol_answer_put_opened(FILE *to, const struct symbol_opened *o)
{
	put_text(to, o->path);
	put_number(to, o->size_and_1);
	put_number(to, o->written_ns);
}

void symbol_answer_put_place(FILE *to, uint64_t address, const struct frame *frames, size_t count)
{
	put_number(to, address);
	put_number(to, count);
	for (size_t i = 0; i < count; i++) {
		const struct frame *f = &frames[i];
		put_text(to, f->function);
		put_text(to, f->file);
		put_text(to, f->language);
		put_number(to, (uint64_t)f->line << 1 | f->inlined);
	}
}

static const char *get_text(struct varint_in *in)
{
	uint64_t n = varint_get(in);
	if (!n)
		return NULL;
	if (n > (uint64_t)(in->end - in->at) || in->at[n - 1]) {
		in->bad = 1;
		return NULL;
	}
	const char *text = (const char *)in->at;
	in->at += n;
	return text;
}

bool symbol_answer_get_opened(struct varint_in *in, struct symbol_opened *o)
{
	o->path = get_text(in);
	o->size_and_1 = varint_get(in);
	o->written_ns = varint_get(in);
	return !in->bad && o->path;
}

bool symbol_answer_get_place(struct varint_in *in, uint64_t *address, struct frame *frames, size_t *count)
{
	*address = varint_get(in);
	*count = varint_get(in);
	if (!*count || *count > MT_SYMBOLS_MAX_FRAMES)
		return false;
	for (size_t i = 0; i < *count; i++) {
		struct frame *f = &frames[i];
		*f = (struct frame){ .function = get_text(in) };
		f->file = get_text(in);
		f->language = get_text(in);
		uint64_t line = varint_get(in);
		f->line = (uint32_t)(line >> 1);
		f->inlined = line & 1;
	}
	return !in->bad;
}
