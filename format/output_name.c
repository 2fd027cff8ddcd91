#include "format/output_name.h"

#include <errno.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/utsname.h>
#include <unistd.h>

/* torchrun's first: under srun its workers have both. RANK_ID is Ascend's. */
const char *const mt_rank_variables[] = { "RANK", "OMPI_COMM_WORLD_RANK", "PMI_RANK", "SLURM_PROCID", "RANK_ID", NULL };
const char *const mt_job_variables[] = { "SLURM_JOB_ID", "PBS_JOBID", "LSB_JOBID", "JOB_ID", NULL };

char *mt_put(char *at, char *end, const char *s)
{
	while (*s && at + 1 < end)
		*at++ = *s++;
	*at = 0;
	return at;
}

char *mt_put_number(char *at, char *end, uint64_t n)
{
	char digits[21];
	int i = 20;

	digits[i] = 0;
	do
		digits[--i] = (char)('0' + n % 10);
	while ((n /= 10) != 0);
	return mt_put(at, end, digits + i);
}

const char *mt_base_name(const char *path)
{
	const char *slash = strrchr(path, '/');

	return slash ? slash + 1 : path;
}

static const char *first_set(const char *const *names)
{
	for (; *names; names++) {
		const char *value = getenv(*names);
		if (value && *value)
			return value;
	}
	return "0";
}

static char *put_placeholder(char *at, char *end, char which, const char *program, uint32_t pid)
{
	struct utsname names;

	switch (which) {
	case 'n':
		return mt_put(at, end, program);
	case 'p':
		return mt_put_number(at, end, pid);
	case 'r':
		return mt_put(at, end, first_set(mt_rank_variables));
	case 'j':
		return mt_put(at, end, first_set(mt_job_variables));
	case 'h':
		names.nodename[0] = 0;
		uname(&names);
		return mt_put(at, end, names.nodename);
	}
	return at;
}

char *mt_put_absolute(char *at, char *end, const char *path)
{
	char cwd[PATH_MAX];

	if (*path != '/' && getcwd(cwd, sizeof(cwd))) {
		at = mt_put(at, end, cwd);
		at = mt_put(at, end, "/");
	}
	return at;
}

void mt_output_name(char *dst, size_t size, const char *pattern, const char *program, uint32_t pid)
{
	char *end = dst + size - 8; /* room for ".2" */
	char *at = mt_put_absolute(dst, end, pattern);

	for (; *pattern && at + 1 < end; pattern++) {
		if (*pattern == '%' && pattern[1])
			at = put_placeholder(at, end, *++pattern, program, pid);
		else
			*at++ = *pattern;
		*at = 0;
	}
	while (at > dst + 1 && at[-1] == '/') /* DIR.2 lies beside DIR/, not in it */
		*--at = 0;
}

static void make_parents(char *path)
{
	for (char *at = strchr(path + 1, '/'); at; at = strchr(at + 1, '/')) {
		*at = 0;
		mkdir(path, 0700);
		*at = '/';
	}
}

static int make(const char *path)
{
	return mkdir(path, 0700) ? -errno : 0;
}

int mt_output_make(char *dst, size_t size)
{
	char *stem = dst + strlen(dst), *end = dst + size;
	int kept = errno, ret = make(dst);

	if (ret == -ENOENT) {
		make_parents(dst);
		ret = make(dst);
	}
	for (uint64_t n = 2; ret == -EEXIST && n < 100000; n++) {
		mt_put_number(mt_put(stem, end, "."), end, n);
		ret = make(dst);
	}
	errno = kept;
	return ret;
}

void mt_raw_prefix(char dst[MT_RAW_PREFIX], uint64_t start_real_ns)
{
	char *end = dst + MT_RAW_PREFIX, *at = mt_put(dst, end, "memtrace-");

	for (int shift = 60; shift >= 0; shift -= 4)
		*at++ = "0123456789abcdef"[start_real_ns >> shift & 15];
	mt_put(at, end, ".");
}
