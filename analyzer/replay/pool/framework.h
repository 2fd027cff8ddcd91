/* Which framework's caching allocator a process uses, and its version. */
#ifndef MT_REPLAY_POOL_FRAMEWORK_H
#define MT_REPLAY_POOL_FRAMEWORK_H

#include "analyzer/reader/reader.h"

enum framework_kind { FRAMEWORK_PYTORCH = 0, FRAMEWORK_TORCH_NPU, FRAMEWORK_MINDSPORE, FRAMEWORK_JAX };

struct framework {
	enum framework_kind kind;
	char version[24]; /* "2.13.0"; "" = not known */
};

/* The framework of a process, on devices of `backend` (enum mt_backend). Its version is read from version.py beside the
 * library that the process had loaded, if that file is not younger than the process. With `files` false no file outside
 * of the trace is opened. */
struct framework framework_of(const struct process *p, uint32_t backend, bool files);

/* Whether it is known to be older than MAJOR.MINOR. */
bool framework_is_before(const struct framework *f, unsigned major, unsigned minor);

const char *framework_name(enum framework_kind kind);

#endif
