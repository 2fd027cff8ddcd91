#include "analyzer/report/dump/dump.h"
#include "analyzer/report/dump/dump_line.h"
#include "analyzer/symbols/symbol_file.h"
#include "analyzer/util/error.h"

#include <stdlib.h>

static void dump_symbol(const struct module_id *id, uint64_t at, const struct frame *f)
{
	dump_begin_alone("symbol");
	dump_text_or_none("path", id->path);
	dump_hex("build_id", id->build_id, (unsigned)id->build_id_bytes);
	dump_address("address", at);
	dump_text_or_none("function", f->function);
	dump_text_or_none("file", f->file);
	dump_text_or_none("language", f->language);
	dump_number("line", f->line);
	dump_number("inlined", f->inlined);
	dump_end();
}

int dump_symbols(const char *dir)
{
	struct symbols *symbols = symbols_new();
	struct symbol_place *places = NULL;
	size_t count = 0;
	int e = symbols ? symbol_file_read(symbols, dir) : error_memory();
	if (!e)
		e = symbols_places(symbols, &places, &count);
	for (size_t i = 0; i < count; i++) {
		struct module_id id = symbols_id(places[i].module);
		for (size_t k = 0; k < places[i].count; k++)
			dump_symbol(&id, places[i].address, &places[i].frames[k]);
	}
	free(places);
	symbols_free(symbols);
	return e;
}
