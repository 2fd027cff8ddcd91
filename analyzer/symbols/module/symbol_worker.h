/*
 * The symbol worker is a process that reads the files of modules. Such a file can come from anybody, may be made to
 * take all memory and all time, and may change while it is read. The worker can then be killed, and the addresses that
 * it was asked for have no names.
 *
 * The worker, and libdw in it, can open regular files only, whatever a trace or a module names. It ends itself when it
 * takes more memory or processor time than is due for the size of the files that it opened for a module.
 */
#ifndef MT_SYMBOLS_MODULE_SYMBOL_WORKER_H
#define MT_SYMBOLS_MODULE_SYMBOL_WORKER_H

#include "analyzer/symbols/module/symbols.h"

struct symbol_cache;
struct symbol_opened;
struct symbol_worker;

struct symbol_worker *symbol_worker_new(void);

/* Starts the process; else the first question does. Best done early: it is a fork, which is cheap while this process is
 * small, and safe while it has no threads, whose locks would never be released in the child. True = it runs. */
bool symbol_worker_start(struct symbol_worker *);
void symbol_worker_free(struct symbol_worker *);
/* It was another process's: this one has none yet. */
void symbol_worker_forget(struct symbol_worker *);

struct symbol_question {
	struct module_id id;
	const uint64_t *addresses; /* in the ELF file; no two are the same */
	size_t count;
	bool more;                  /* the file stays open, as other questions about it may follow */
	struct symbol_cache *cache; /* is told the answer; NULL: none */
	/* called for each file that was asked for; its path is valid during the call only */
	void (*opened)(void *data, const struct symbol_opened *);
};

/* Gets the answer for one address: frames as of module_file_find(), valid during the call only. */
typedef void symbol_worker_take(void *data, uint64_t address, const struct frame *frames, size_t count);

/* Asks, and waits for the answer. If it returns SYMBOLS_READ, `take` was called for each address, in any order. With
 * SYMBOLS_GIVEN_UP *why is set to a constant text. */
enum symbol_state symbol_worker_ask(struct symbol_worker *, const struct symbol_question *, symbol_worker_take *take,
				    void *data, const char **why);

#endif
