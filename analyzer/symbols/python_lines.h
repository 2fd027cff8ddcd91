/* Which line of its file an instruction of a Python code object belongs to. */
#ifndef MT_SYMBOLS_PYTHON_LINES_H
#define MT_SYMBOLS_PYTHON_LINES_H

#include "analyzer/reader/reader.h"

/* The line of the instruction at `offset` (in bytes); 0 = it belongs to no line, or the table is damaged. */
uint32_t python_lines_find(const struct process_code *code, uint32_t offset);

#endif
