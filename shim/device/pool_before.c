#include "shim/device/pool_before.h"

#include <errno.h>
#include <stdint.h>

#include "shim/base/elfsearch.h"
#include "shim/device/cuda.h"
#include "shim/device/device.h"
#include "shim/hooks/hooks.h"
#include "shim/python/pycode.h"
#include "shim/stack/tree.h"

#define LARGE (20u << 20) /* what the allocator maps at once of an expandable segment */
#define SMALL (2u << 20)

enum { NOT_WANTED, WANTED, ASKED };

static uint32_t stage;

/* ---- the interpreter ---- */

/* All objects are PyObject *. Where a comment says so the result is borrowed. */
static struct {
	int (*Py_IsInitialized)(void);
	int (*Py_AddPendingCall)(int (*)(void *), void *);
	int (*PyGC_Disable)(void); /* since 3.10 */
	int (*PyGC_Enable)(void);
	void *(*PyErr_Occurred)(void); /* borrowed */
	void (*PyErr_Clear)(void);
	void *(*PyImport_GetModuleDict)(void);                   /* borrowed */
	void *(*PyModule_GetDict)(void *module);                 /* borrowed */
	void *(*PyDict_GetItemString)(void *dict, const char *); /* borrowed */
	void *(*Py_BuildValue)(const char *, ...);
	void *(*PyBool_FromLong)(long);
	void *(*PyObject_CallObject)(void *function, void *arguments);
	void (*Py_DecRef)(void *);
	long (*PyList_Size)(void *);
	void *(*PyList_GetItem)(void *, long); /* borrowed */
	unsigned long long (*PyLong_AsUnsignedLongLongMask)(void *);
	int (*PyObject_IsTrue)(void *);
	int (*PyUnicode_CompareWithASCIIString)(void *, const char *);
} py;

static int find_interpreter(void)
{
	static const char *const names[] = {
		"Py_IsInitialized",
		"Py_AddPendingCall",
		"PyGC_Disable",
		"PyGC_Enable",
		"PyErr_Occurred",
		"PyErr_Clear",
		"PyImport_GetModuleDict",
		"PyModule_GetDict",
		"PyDict_GetItemString",
		"Py_BuildValue",
		"PyBool_FromLong",
		"PyObject_CallObject",
		"Py_DecRef",
		"PyList_Size",
		"PyList_GetItem",
		"PyLong_AsUnsignedLongLongMask",
		"PyObject_IsTrue",
		"PyUnicode_CompareWithASCIIString",
	};
	void **functions = (void **)(void *)&py;

	_Static_assert(sizeof(names) / sizeof(names[0]) == sizeof(py) / sizeof(void *), "a name for each");
	for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++)
		if (!functions[i] && !(functions[i] = mt_symbols_search(MT_ANY, NULL, names[i], NULL)))
			return 0;
	return 1;
}

/* ---- a snapshot becomes events ---- */

static uint64_t number(void *dict, const char *name)
{
	void *value = py.PyDict_GetItemString(dict, name);

	return value ? py.PyLong_AsUnsignedLongLongMask(value) : 0;
}

static int says(void *dict, const char *name, const char *text)
{
	void *value = py.PyDict_GetItemString(dict, name);

	return value && !py.PyUnicode_CompareWithASCIIString(value, text);
}

static void tell(enum mt_kind kind, struct mt_device_event e, enum mt_class class, uint64_t addr, uint64_t bytes)
{
	e.class = class;
	e.addr = addr;
	e.bytes = bytes;
	mt_device_note(kind, &e);
}

/* The driver's handles are not in the snapshot: each has a number that no handle has. It is given back at once, so the
 * memory ends when it is unmapped. */
static void tell_mapped(struct mt_device_event e, uint64_t start, uint64_t end, uint64_t piece)
{
	for (uint64_t at = start; at < end; at += piece) {
		uint64_t *claim = mt_seen_claim(MT_CLASS_DEVICE, at), handle = at | 1ull << 63,
			 bytes = end - at < piece ? end - at : piece;
		if (!claim)
			continue;
		e.stream = 0;
		tell(MT_DEVICE_ALLOC, e, MT_CLASS_PHYSICAL, handle, bytes);
		e.stream = handle;
		tell(MT_DEVICE_MAP, e, MT_CLASS_PHYSICAL, at, bytes);
		e.stream = 0;
		tell(MT_DEVICE_FREE, e, MT_CLASS_PHYSICAL, handle, 0);
		mt_seen_told(claim);
	}
}

static void tell_linear(struct mt_device_event e, uint64_t start, uint64_t end)
{
	uint64_t *claim = mt_seen_claim(MT_CLASS_DEVICE, start);

	if (!claim)
		return;
	e.stream = 0;
	tell(MT_DEVICE_ALLOC, e, MT_CLASS_DEVICE, start, end - start);
	mt_seen_told(claim);
}

static void tell_block(struct mt_device_event e, void *block, uint64_t addr, uint64_t bytes)
{
	uint64_t asked = number(block, "requested_size"),
		 *claim = says(block, "state", "active_allocated") ? mt_seen_claim(MT_CLASS_POOL, addr) : NULL;

	if (!claim)
		return;
	e.other = asked && asked <= bytes ? bytes - asked + 1 : 0;
	tell(MT_DEVICE_ALLOC, e, MT_CLASS_POOL, addr, bytes);
	mt_seen_told(claim);
}

static void tell_segment(void *segment, uint32_t node)
{
	struct mt_device_event e = { .hook = MT_HOOK_torch_from_before, .told = node };
	uint64_t start = number(segment, "address"), end = start + number(segment, "total_size"), at = start, bytes;
	void *blocks = py.PyDict_GetItemString(segment, "blocks"),
	     *expandable = py.PyDict_GetItemString(segment, "is_expandable");
	long n = blocks ? py.PyList_Size(blocks) : 0;

	e.device = mt_cuda_id((int)number(segment, "device"));
	e.stream = number(segment, "stream");
	if (!start || !e.device)
		return;
	if (expandable && py.PyObject_IsTrue(expandable) == 1)
		tell_mapped(e, start, end, says(segment, "segment_type", "large") ? LARGE : SMALL);
	else
		tell_linear(e, start, end);
	for (long i = 0; i < n; i++, at += bytes) {
		void *block = py.PyList_GetItem(blocks, i);
		bytes = number(block, "size");
		tell_block(e, block, at, bytes);
	}
}

static void tell_all(void *snapshot)
{
	void *segments = py.PyDict_GetItemString(snapshot, "segments");
	uint32_t code = mt_pycode_named(MT_BEFORE_NAME),
		 node = code ? mt_tree_child(0, MT_PY_FRAME | MT_PY_ENTRY | (uint64_t)code << 32, MT_NODE_PYTHON)
			     : MT_NODE_FAILED;
	long n = segments ? py.PyList_Size(segments) : 0;

	for (long i = 0; node != MT_NODE_FAILED && i < n && mt_process_state() == MT_STATE_ACTIVE; i++)
		tell_segment(py.PyList_GetItem(segments, i), node);
}

/* Without what was recorded of each allocation, where the version lets that be chosen. */
static void *take_snapshot(void *function)
{
	void *arguments = py.Py_BuildValue("((iiN))", 0, 0, py.PyBool_FromLong(0)),
	     *snapshot = arguments ? py.PyObject_CallObject(function, arguments) : NULL;

	if (arguments)
		py.Py_DecRef(arguments);
	if (snapshot)
		return snapshot;
	py.PyErr_Clear();
	return py.PyObject_CallObject(function, NULL);
}

/* What is there under these names, without any code of the program's. */
static void *find_function(void)
{
	void *modules = py.PyImport_GetModuleDict(),
	     *module = modules ? py.PyDict_GetItemString(modules, "torch._C") : NULL,
	     *names = module ? py.PyModule_GetDict(module) : NULL;

	return names ? py.PyDict_GetItemString(names, "_cuda_memorySnapshot") : NULL;
}

/* In the main thread, which has the interpreter's lock. A collection of garbage would be a moment of our choice. */
static int in_interpreter(void *unused)
{
	int kept = errno, collects;
	void *function, *snapshot;

	(void)unused;
	if (!mt_seen_on || mt_process_state() != MT_STATE_ACTIVE || !mt_process_is_owner() || py.PyErr_Occurred())
		goto done;
	collects = py.PyGC_Disable();
	function = find_function();
	snapshot = function ? take_snapshot(function) : NULL;
	if (snapshot) {
		tell_all(snapshot);
		py.Py_DecRef(snapshot);
	}
	py.PyErr_Clear();
	if (collects)
		py.PyGC_Enable();
done:
	mt_seen_end();
	errno = kept;
	return 0;
}

/* ---- when ---- */

void mt_pool_before_want(void)
{
	uint32_t is = WANTED;
	int kept = errno;

	if (mt_process_state() != MT_STATE_ACTIVE || !mt_process_is_owner() ||
	    !__atomic_compare_exchange_n(&stage, &is, ASKED, 0, __ATOMIC_ACQ_REL, __ATOMIC_RELAXED))
		return;
	if (!find_interpreter() || !py.Py_IsInitialized())
		mt_seen_end();
	else if (py.Py_AddPendingCall(in_interpreter, NULL))
		__atomic_store_n(&stage, WANTED, __ATOMIC_RELEASE); /* many are waiting: at the next block */
	errno = kept;
}

/* Blocks that were there when recording was stopped are known. */
static void turn_on(void)
{
	if (mt_process.info->stops || stage != NOT_WANTED)
		return;
	mt_seen_begin();
	__atomic_store_n(&stage, WANTED, __ATOMIC_RELEASE);
}

static void turn_off(void)
{
	mt_seen_end();
}

static const struct mt_process_turn turn = { turn_on, turn_off };
MT_SET_ADD(mt_process_turn, turn);
