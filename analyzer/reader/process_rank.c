#include "analyzer/reader/process_rank.h"
#include "analyzer/util/error.h"
#include "format/number.h"
#include "format/output_name.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { MOST_RANK = 100000000, TAGS_SHOWN = 24 };

static const char *value_of(const struct process *p, const char *name)
{
	size_t n = strlen(name);
	for (unsigned i = 0; i < p->env_count; i++)
		if (!strncmp(p->env[i], name, n) && p->env[i][n] == '=' && p->env[i][n + 1])
			return p->env[i] + n + 1;
	return NULL;
}

static const char *first_of(const struct process *p, const char *const *names)
{
	const char *value = NULL;
	while (*names && !value)
		value = value_of(p, *names++);
	return value;
}

static int64_t number(const char *text)
{
	uint64_t value;
	return text && !mt_read_count(text, &value) && value < MOST_RANK ? (int64_t)value : PROCESS_NO_RANK;
}

/* "python rank 3 pp=1,tp=0" */
static int set_name(struct image *im)
{
	struct process *p = &im->process;
	char rank[32] = "", *name;
	if (p->rank != PROCESS_NO_RANK)
		snprintf(rank, sizeof(rank), " rank %" PRId64, p->rank);
	if (asprintf(&name, "%s%s%s%.*s", p->program, rank, *p->tags ? " " : "", TAGS_SHOWN, p->tags) < 0)
		return error_memory();
	im->label = name;
	return 0;
}

int process_rank_load(struct image *im)
{
	static const char *const local[] = { "LOCAL_RANK", "OMPI_COMM_WORLD_LOCAL_RANK", "MPI_LOCALRANKID",
					     "SLURM_LOCALID", NULL };
	static const char *const world[] = { "WORLD_SIZE", "OMPI_COMM_WORLD_SIZE",
					     "PMI_SIZE",   "SLURM_NTASKS",
					     "RANK_SIZE",  NULL };
	static const char *const group[] = { "GROUP_RANK", "OMPI_COMM_WORLD_NODE_RANK", "SLURM_NODEID", NULL };
	struct process *p = &im->process;
	const char *tags = value_of(p, "MEMTRACE_TAGS"), *job = first_of(p, mt_job_variables);
	p->rank = number(first_of(p, mt_rank_variables));
	p->local_rank = number(first_of(p, local));
	p->world_size = number(first_of(p, world));
	p->group_rank = number(first_of(p, group));
	p->tags = tags ? tags : "";
	p->job = job ? job : "";
	if (!im->label && (p->rank != PROCESS_NO_RANK || *p->tags) && set_name(im))
		return -MT_EMEMORY;
	p->name = im->label ? im->label : p->program;
	return 0;
}
