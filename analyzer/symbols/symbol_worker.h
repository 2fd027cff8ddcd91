/*
 * The process that reads the files of modules. They may be anybody's, also such that are made to take all memory and
 * all time, and they may change meanwhile: a process that reads them can be ended, and what it was asked for has no
 * names then.
 *
 * It opens regular files only, whatever a trace or a module names and whoever opens it, libdw too; and it ends itself
 * when it takes more memory or processor time than the files that it opened for a module warrant.
 */
#ifndef MT_SYMBOLS_SYMBOL_WORKER_H
#define MT_SYMBOLS_SYMBOL_WORKER_H

#include "analyzer/symbols/symbols.h"

struct symbol_worker;

struct symbol_worker *symbol_worker_new(void);

/* Starts it. Best while this process is small, and has no threads, whose locks it would never see released; a first
 * question does so, too. */
bool symbol_worker_start(struct symbol_worker *);
void symbol_worker_free(struct symbol_worker *);

struct symbol_question {
	struct module_id id;
	const uint64_t *addresses; /* no two are the same */
	size_t count;
	bool more; /* keep the file open, other questions about it may follow */
};

/* What one address is: frames as module_file_find() says them, valid during the call only. */
typedef void symbol_worker_take(void *data, uint64_t address, const struct frame *frames, size_t count);

/* Calls `take` for each address, in any order, if SYMBOLS_READ is returned. With SYMBOLS_GIVEN_UP *why is a text that
 * lives for ever. */
enum symbol_state symbol_worker_ask(struct symbol_worker *, const struct symbol_question *, symbol_worker_take *take,
				    void *data, const char **why);

#endif
