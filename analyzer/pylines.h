/* Which line of its file an instruction of a Python code object belongs to. */
#ifndef MT_ANALYZER_PYLINES_H
#define MT_ANALYZER_PYLINES_H

#include "analyzer/reader.h"

/* `offset` in bytes; the line, or 0 if the instruction belongs to none or the table is damaged. */
uint32_t pylines_find(const struct process_code *code, uint32_t offset);

#endif
