/* Which CPython is in this process, and where it keeps things. */
#ifndef MT_PYTHON_PYFIND_H
#define MT_PYTHON_PYFIND_H

#include <stdint.h>

#include "shim/base/elfsym.h"

/* Offsets of fields in the interpreter's structs; MT_PY_NONE = that version lacks the field. See pyoffsets.def. */
struct mt_pylayout {
	uint16_t state_frame, cframe_frame;
	uint16_t frame_previous, frame_code, frame_instr, frame_owner, frame_entry;
	uint16_t code_filename, code_name, code_lines, code_first_line, code_instr;
	uint16_t object_type, type_dealloc, bytes_size, bytes_data;
	uint16_t text_length, text_state, text_ascii, text_other;
};

#define MT_PY_NONE UINT16_MAX

struct mt_pyruntime {
	struct mt_pylayout at;
	uint32_t version; /* 0x030b for 3.11 */
	uint32_t watched; /* code objects' deaths are seen: see pycode.c */
	uintptr_t code_type, text_type;
	void *(*this_state)(void); /* the calling thread's own state, whoever holds the GIL; no lock */
	int (*is_finalizing)(void);
	uint32_t trust;    /* captures that were right in every respect while being read with care */
	uint32_t distrust; /* and those that were not */
};

/* NULL while there is none: no module that was met has one, or it has gone. */
extern struct mt_pyruntime *mt_pyruntime;

/* Whether the interpreter's memory is to be read with care: until the layout has proven right, and when threads'
 * states may be freed by others because the interpreter ends. */
#define MT_PY_TRUSTED 64
static inline int mt_pyruntime_careful(const struct mt_pyruntime *rt)
{
	return rt->trust < MT_PY_TRUSTED || rt->is_finalizing();
}

/* The row of pyoffsets.def for this version, or NULL. */
const struct mt_pylayout *mt_pylayout_of(uint32_t version);

#endif
