#include <errno.h>
#include <string.h>
#include <unistd.h>

#include "format/output_name.h"
#include "shim/base/log.h"
#include "shim/base/state.h"
#include "shim/trace/settings.h"

static int is_variable(const char *setting, const char *const *names)
{
	size_t n = strcspn(setting, "=");

	for (; *names; names++)
		if (!strncmp(setting, *names, n) && !(*names)[n])
			return 1;
	return 0;
}

/* The end of the prefix in `text`, or NULL. */
static const char *behind(const char *text, const char *prefix)
{
	for (; *prefix; text++, prefix++)
		if (*text != *prefix)
			return NULL;
	return text;
}

static int is_listed(const char *setting)
{
	static const struct {
		const char *prefix, *within;
	} listed[] = {
		{ "PYTORCH_", "ALLOC_CONF=" },
		{ "ASCEND_", "_VISIBLE_DEVICES=" },
		{ "CUDA_VISIBLE_DEVICES=", "" },
		{ "HIP_VISIBLE_DEVICES=", "" },
		{ "ROCR_VISIBLE_DEVICES=", "" },
		{ "ZE_AFFINITY_MASK=", "" },
		{ "MALLOC_", "" },
		{ "GLIBC_TUNABLES=", "" },
		{ "TCMALLOC_", "" },
		{ "MIMALLOC_", "" },
		{ "OMP_", "" },
		{ "LD_PRELOAD=", "" },
		{ "PYTHONMALLOC=", "" },
		{ "LOCAL_RANK=", "" },
		{ "GROUP_RANK=", "" },
		{ "WORLD_SIZE=", "" },
		{ "OMPI_COMM_WORLD_", "" },
		{ "MPI_LOCALRANKID=", "" },
		{ "PMI_SIZE=", "" },
		{ "SLURM_LOCALID=", "" },
		{ "SLURM_NODEID=", "" },
		{ "SLURM_NTASKS=", "" },
		{ "RANK_SIZE=", "" },
		{ "MEMTRACE_TAGS=", "" },
	};

	for (size_t i = 0; i < sizeof(listed) / sizeof(listed[0]); i++)
		if (behind(setting, listed[i].prefix) && strstr(setting, listed[i].within))
			return 1;
	return is_variable(setting, mt_rank_variables) || is_variable(setting, mt_job_variables);
}

static int is_of_a_pool(const char *setting)
{
	return behind(setting, "PYTORCH_") && strstr(setting, "ALLOC_CONF") != NULL;
}

static uint64_t hash_of(uint64_t hash, const char *text)
{
	for (; *text; text++)
		hash = (hash ^ (unsigned char)*text) * 0x100000001b3ull;
	return hash;
}

/* Hashes of what was logged, and of a pool's settings when it asked for them. */
static uint64_t logged, in_force;
static uint8_t has_asked;

/* Logs the environment's settings that are to be, if their hash is another than `before`; returns it. */
static uint64_t log_changed(uint16_t type, int (*is_wanted)(const char *), uint64_t before)
{
	struct mt_part parts[48];
	uint64_t hash = 0;
	int n = 0;

	/* each entry is read once: another thread may be taking it away */
	for (char **e = environ, *entry; e && n < 48 && (entry = __atomic_load_n(e, __ATOMIC_RELAXED)) != NULL; e++)
		if (is_wanted(entry)) {
			parts[n++] = (struct mt_part){ entry, strlen(entry) + 1 };
			hash = hash_of(hash, entry);
		}
	if (type && hash != before)
		mt_log_add(type, parts, n);
	return hash;
}

void mt_settings_log(void)
{
	logged = log_changed(MT_REC_ENV, is_listed, 0);
}

void mt_settings_asked(const char *name)
{
	int kept = errno;

	if (is_of_a_pool(name) && mt_process_state() != MT_STATE_OFF && mt_process.info) {
		logged = log_changed(MT_REC_ENV, is_listed, logged);
		in_force = log_changed(0, is_of_a_pool, 0);
		has_asked = 1;
	}
	errno = kept;
}

void mt_settings_failed(void)
{
	if (has_asked)
		in_force = log_changed(MT_REC_LATE, is_of_a_pool, in_force);
}
