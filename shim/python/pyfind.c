/*
 * An interpreter is known by the symbols it exports, whether it is an executable or a library. They are looked up
 * when modules.c meets the module, in the module's own tables; nothing of the interpreter is called then.
 */
#include <string.h>

#include "shim/base/config.h"
#include "shim/base/holders.h"
#include "shim/python/pyfind.h"
#include "shim/stack/modules.h"

#define COUNT(a) (sizeof(a) / sizeof((a)[0]))
#define NONE     MT_PY_NONE

static const struct row {
	uint32_t version;
	struct mt_pylayout layout;
} rows[] = {
#define PYTHON(major, minor, ...) { (major) << 8 | (minor), { __VA_ARGS__ } },
#include "shim/python/pyoffsets.def"
#undef PYTHON
};

/* Before 3.11 the version is no data symbol; each has a function that the one before had not. */
static const struct {
	uint32_t version;
	const char *symbol;
} marks[] = {
	{ 0x30a, "PyIter_Send" },
	{ 0x309, "PyFrame_GetCode" },
	{ 0x308, "PyCode_NewWithPosOnlyArgs" },
};

/* _PyRuntime begins with a table of offsets (_Py_DebugOffsets) since 3.13. Which of its 64-bit words is which: */
static const struct described {
	uint32_t version;
	uint8_t words, state_frame, frame_previous, frame_code, frame_instr, frame_owner, code_filename, code_name,
		code_lines, code_first_line, code_instr, object_type, type_name, bytes_size, bytes_data, text_state,
		text_length, text_ascii;
} described[] = {
	{ 0x30d, 71, 23, 29, 30, 31, 33, 35, 37, 38, 39, 43, 45, 47, 65, 66, 68, 69, 70 },
	{ 0x30e, 81, 26, 32, 33, 34, 36, 40, 42, 43, 44, 48, 51, 53, 75, 76, 78, 79, 80 },
};
#define DESCRIBED_OFFSETS 3 /* the words before say which interpreter it is */

static struct mt_pyruntime found;
struct mt_pyruntime *mt_pyruntime;

const struct mt_pylayout *mt_pylayout_of(uint32_t version)
{
	for (size_t i = 0; i < COUNT(rows); i++)
		if (rows[i].version == version)
			return &rows[i].layout;
	return NULL;
}

static uint32_t version_of(const struct mt_symbols *s)
{
	const unsigned long *hex = mt_symbols_find(s, "Py_Version");

	if (hex)
		return (uint32_t)(*hex >> 16);
	for (size_t i = 0; i < COUNT(marks); i++)
		if (mt_symbols_find(s, marks[i].symbol))
			return marks[i].version;
	return 0;
}

static int read_description(const uint64_t *words, uint32_t version, struct mt_pylayout *at)
{
	const struct described *d = described;

	while (d < described + COUNT(described) && d->version != version)
		d++;
	if (!words || memcmp(words, "xdebugpy", 8) || d == described + COUNT(described))
		return 0;
	for (unsigned i = DESCRIBED_OFFSETS; i < d->words; i++)
		if (words[i] >= 1u << 20) /* no offset and no size of anything here */
			return 0;
	*at = (struct mt_pylayout){
#define WORD(field) .field = (uint16_t)words[d->field]
		WORD(state_frame),
		WORD(frame_previous),
		WORD(frame_code),
		WORD(frame_instr),
		WORD(frame_owner),
		WORD(code_filename),
		WORD(code_name),
		WORD(code_lines),
		WORD(code_first_line),
		WORD(code_instr),
		WORD(object_type),
		WORD(bytes_size),
		WORD(bytes_data),
		WORD(text_state),
		WORD(text_length),
		WORD(text_ascii),
#undef WORD
		.cframe_frame = NONE,
		.frame_entry = NONE,
		/* what is not described lies at a fixed distance */
		.text_other = (uint16_t)(words[d->text_ascii] + 16),
		.type_dealloc = (uint16_t)(words[d->type_name] + 24),
	};
	return 1;
}

static int layout_of(const struct mt_symbols *s, uint32_t version, struct mt_pylayout *at)
{
	const struct mt_pylayout *row = mt_pylayout_of(version);

	if (version >= 0x30d)
		return read_description(mt_symbols_find(s, "_PyRuntime"), version, at);
	if (row)
		*at = *row;
	return row != NULL;
}

static int is_finalizing_unknown(void)
{
	return 0;
}

static void set_runtime(const struct mt_symbols *s, void *this_state)
{
	struct mt_pyruntime new = { .version = version_of(s) };
	void *finalizing = mt_symbols_find(s, "Py_IsFinalizing");

	if (!finalizing)
		finalizing = mt_symbols_find(s, "_Py_IsFinalizing");
	new.this_state = (void *(*)(void))(uintptr_t)this_state;
	new.is_finalizing = finalizing ? (int (*)(void))(uintptr_t)finalizing : is_finalizing_unknown;
	new.code_type = (uintptr_t)mt_symbols_find(s, "PyCode_Type");
	new.text_type = (uintptr_t)mt_symbols_find(s, "PyUnicode_Type");
	if (!new.code_type || !new.text_type || !layout_of(s, new.version, &new.at)) {
		mt_say("a Python without frames: ", "its version is not known");
		return;
	}
	mt_holders_meet(s, new.version, &new.at);
	found = new;
	/* release: who sees the pointer sees the layout */
	__atomic_store_n(&mt_pyruntime, &found, __ATOMIC_RELEASE);
}

static void meet(const struct dl_phdr_info *info)
{
	struct mt_symbols symbols;
	void *this_state;

	if (!mt_config.python || mt_pyruntime || !mt_symbols_of(info, &symbols))
		return;
	this_state = mt_symbols_find(&symbols, "PyGILState_GetThisThreadState");
	if (this_state)
		set_runtime(&symbols, this_state);
}

static void forget(uint64_t start, uint64_t end)
{
	if (found.code_type < start || found.code_type >= end)
		return;
	mt_holders_forget();
	__atomic_store_n(&mt_pyruntime, NULL, __ATOMIC_RELAXED);
}

static const struct mt_modules_watch watch = { .met = meet, .gone = forget };
MT_SET_ADD(mt_modules_watch, watch);
