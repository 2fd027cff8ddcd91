/* What shows whose memory it is that a library allocates on threads of its own. The table is worker_settings.def. */
#ifndef MT_SYMBOLS_WORKER_SETTINGS_H
#define MT_SYMBOLS_WORKER_SETTINGS_H

#include "analyzer/symbols/stacks.h"

/* The setting, as a program writes it, with which blocks of this stack would have a line of the program. NULL = they
 * have one, or no library in the table made them. */
const char *worker_setting(struct stacks *s, uint32_t stack);

#endif
