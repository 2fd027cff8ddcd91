#include "analyzer/replay/pool/framework.h"

#include "analyzer/util/output.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

enum { MOST_LINES = 64 };

static const char *const names[] = {
	[FRAMEWORK_PYTORCH] = "PyTorch",
	[FRAMEWORK_TORCH_NPU] = "torch_npu",
	[FRAMEWORK_MINDSPORE] = "MindSpore",
	[FRAMEWORK_JAX] = "JAX",
};

/* Of a backend the first is the usual one. */
static const struct {
	uint32_t backend;
	enum framework_kind kind;
	const char *library; /* the file that its allocator is in begins so */
} allocators[] = {
	{ MT_BACKEND_CUDA, FRAMEWORK_PYTORCH, "libc10_cuda.so" },
	{ MT_BACKEND_CUDA, FRAMEWORK_JAX, "xla_cuda_plugin.so" },
	{ MT_BACKEND_HIP, FRAMEWORK_PYTORCH, "libc10_hip.so" },
	{ MT_BACKEND_HIP, FRAMEWORK_JAX, "xla_rocm_plugin.so" },
	{ MT_BACKEND_XPU, FRAMEWORK_PYTORCH, "libc10_xpu.so" },
	{ MT_BACKEND_ASCEND, FRAMEWORK_TORCH_NPU, "libtorch_npu.so" },
	{ MT_BACKEND_ASCEND, FRAMEWORK_MINDSPORE, "libmindspore" },
};

enum { ALLOCATORS = sizeof(allocators) / sizeof(allocators[0]) };

const char *framework_name(enum framework_kind kind)
{
	return names[kind];
}

/* A forked child has what its parent had loaded. */
static const struct process_module *module_of(const struct process *p, const char *begin)
{
	for (; p; p = p->parent)
		for (unsigned i = 0; i < p->module_count; i++) {
			const char *slash = strrchr(p->modules[i].path, '/');
			if (slash && !strncmp(slash + 1, begin, strlen(begin)))
				return &p->modules[i];
		}
	return NULL;
}

/* "torch/lib/libc10_cuda.so" -> "torch/version.py"; NULL = it lies elsewhere. */
static char *version_file(const char *library)
{
	const char *end = strrchr(library, '/');
	while (end && end > library && end[-1] != '/')
		end--;
	return end && end > library ? output_format("%.*sversion.py", (int)(end - library), library) : NULL;
}

/* __version__ = '2.13.0+cu130' */
static void read_version(FILE *in, char *version, size_t size)
{
	char line[256];
	for (int i = 0; i < MOST_LINES && fgets(line, sizeof(line), in); i++) {
		char *value = strpbrk(line, "'\"");
		if (strncmp(line, "__version__ =", 13) || !value)
			continue;
		value++;
		snprintf(version, size, "%.*s", (int)strspn(value, "0123456789."), value);
		return;
	}
}

struct framework framework_of(const struct process *p, uint32_t backend, bool files)
{
	const struct process_module *m = NULL;
	struct framework f = { .kind = backend == MT_BACKEND_ASCEND ? FRAMEWORK_TORCH_NPU : FRAMEWORK_PYTORCH };
	for (unsigned i = 0; i < ALLOCATORS && !m; i++)
		if (allocators[i].backend == backend && (m = module_of(p, allocators[i].library)) != NULL)
			f.kind = allocators[i].kind;
	if (!files)
		m = NULL;
	char *path = m ? version_file(m->path) : NULL;
	struct stat st;
	FILE *in = path ? fopen(path, "re") : NULL;
	if (in && !fstat(fileno(in), &st) && S_ISREG(st.st_mode) &&
	    (uint64_t)st.st_mtim.tv_sec <= p->start_real_ns / 1000000000u)
		read_version(in, f.version, sizeof(f.version));
	if (in)
		fclose(in);
	free(path);
	return f;
}

bool framework_is_before(const struct framework *f, unsigned major, unsigned minor)
{
	unsigned a, b;
	return sscanf(f->version, "%u.%u", &a, &b) == 2 && (a < major || (a == major && b < minor));
}
