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

/* A setting, or its name. */
static int is_of_a_pool(const char *setting)
{
	return behind(setting, "PYTORCH_") && strstr(setting, "ALLOC_CONF") != NULL;
}

static int is_listed(const char *setting)
{
	static const struct {
		const char *prefix, *within;
	} listed[] = {
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
	return is_of_a_pool(setting) || is_variable(setting, mt_rank_variables) ||
	       is_variable(setting, mt_job_variables);
}

static uint64_t hash_of(uint64_t hash, const char *text)
{
	for (; *text; text++)
		hash = (hash ^ (unsigned char)*text) * 0x100000001b3ull;
	return hash;
}

enum { MOST = 48 }; /* entries */

/* Those entries of the environment that are wanted, and a hash of them. Returns how many. */
static int collect(int (*is_wanted)(const char *), struct mt_part *parts, uint64_t *hash)
{
	int n = 0;

	*hash = 0;
	/* each entry is read once: another thread may be taking it away */
	for (char **e = environ, *entry; e && n < MOST && (entry = __atomic_load_n(e, __ATOMIC_RELAXED)) != NULL; e++)
		if (is_wanted(entry)) {
			parts[n++] = (struct mt_part){ entry, strlen(entry) + 1 };
			*hash = hash_of(*hash, entry);
		}
	return n;
}

/* Logs them if they are others than those that `hash` is of. */
static void log_changed(uint16_t type, int (*is_wanted)(const char *), uint64_t *hash)
{
	struct mt_part parts[MOST];
	const uint64_t before = *hash;
	const int n = collect(is_wanted, parts, hash);

	if (*hash != before)
		mt_log_add(type, parts, n);
}

/* Hashes of what was logged, and of a pool's settings when it asked for them. */
static uint64_t logged, in_force;
static uint8_t has_asked;

void mt_settings_log(void)
{
	logged = 0;
	log_changed(MT_REC_ENV, is_listed, &logged);
}

void mt_settings_asked(const char *name)
{
	struct mt_part parts[MOST];
	int kept = errno;

	if (is_of_a_pool(name) && mt_process_state() != MT_STATE_OFF && mt_process.info) {
		log_changed(MT_REC_ENV, is_listed, &logged);
		collect(is_of_a_pool, parts, &in_force);
		has_asked = 1;
	}
	errno = kept;
}

void mt_settings_failed(void)
{
	if (has_asked)
		log_changed(MT_REC_LATE, is_of_a_pool, &in_force);
}
