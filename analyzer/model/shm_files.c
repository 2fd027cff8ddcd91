#include "analyzer/model/shm_files.h"

#include "analyzer/model/process_memory.h"
#include "analyzer/util/error.h"
#include "analyzer/util/search.h"
#include "format/fnv.h"

#define MOST_FILES (1u << 20) /* more are not told apart, and not counted */

static uint64_t hash_of(const void *things, uint32_t number)
{
	return ((const uint64_t *)things)[number - 1];
}

/* NULL = none there, or one that has no name any more. */
static const char *path_of(const struct process *p, uint32_t file)
{
	static const char folder[] = "/dev/shm/", gone[] = " (deleted)";
	const size_t at = SEARCH_FIRST(i, p->file_count, p->files[i].id >= file);
	const char *path = file && at < p->file_count && p->files[at].id == file ? p->files[at].path : NULL;
	if (!path || strncmp(path, folder, sizeof(folder) - 1))
		return NULL;
	const size_t n = strlen(path);
	return n >= sizeof(gone) && !strcmp(path + n - (sizeof(gone) - 1), gone) ? NULL : path;
}

/* 1: it was not seen before; 0: it was; or an error. */
static int see(struct shm_files *f, uint64_t hash)
{
	if (f->seen_count >= MOST_FILES)
		return 0;
	if (hash_index_is_full(&f->index, f->seen_count) && hash_index_grow(&f->index, f->seen, f->seen_count, hash_of))
		return -MT_EMEMORY;
	size_t at = hash_index_home(&f->index, hash);
	for (uint32_t n; (n = hash_index_candidate(&f->index, hash, &at)); at = hash_index_after(&f->index, at))
		if (f->seen[n - 1] == hash)
			return 0;
	if (vec_reserve(f->seen, f->seen_room, f->seen_count + 1))
		return error_memory();
	f->seen[f->seen_count++] = hash;
	hash_index_set(&f->index, at, (uint32_t)f->seen_count, hash);
	return 1;
}

static void count(struct model_shm_maker *m, uint64_t bytes, uint64_t ns)
{
	m->all = (struct model_shm_made){ ns, m->all.files + 1, m->all.bytes + bytes };
	if (m->all.files > (uint64_t)m->each * MODEL_SHM_POINTS) {
		for (size_t i = 0; i < MODEL_SHM_POINTS / 2; i++)
			m->points[i] = m->points[2 * i + 1];
		m->each *= 2;
	}
	if (m->all.files % m->each == 0)
		m->points[m->all.files / m->each - 1] = m->all;
}

int shm_files_note(struct process_memory *memory, const struct range *r)
{
	struct shm_files *f = &memory->model->shm;
	const struct process *p = memory->seen.process;
	const char *path = path_of(p, r->file);
	if (!path)
		return 0;
	const uint64_t hash = (mt_fnv_text(MT_FNV_START, path) ^ (uintptr_t)p->host) * 0x9e3779b97f4a7c15ull;
	const int e = see(f, hash);
	if (e <= 0)
		return e;
	const struct site_key key = site_table_key(&memory->sites, r->site);
	struct model_shm_maker *m = f->makers, *end = m + f->maker_count;
	while (m < end && (m->process != p->id || m->node != key.node || m->node2 != key.node2))
		m++;
	if (m == end) {
		if (vec_reserve(f->makers, f->maker_room, f->maker_count + 1))
			return error_memory();
		m = &f->makers[f->maker_count++];
		*m = (struct model_shm_maker){
			.process = p->id, .node = key.node, .node2 = key.node2, .each = 1, .first_ns = r->ns
		};
	}
	count(m, r->end - r->start, r->ns);
	return 0;
}

size_t model_shm_makers(const struct model *m, const struct model_shm_maker **list)
{
	*list = m->shm.makers;
	return m->shm.maker_count;
}

struct model_shm_made model_shm_made_by(const struct model_shm_maker *m, uint64_t ns)
{
	if (ns >= m->all.ns)
		return m->all;
	const size_t n = m->all.files / m->each;
	const size_t later = SEARCH_FIRST(i, n, m->points[i].ns > ns);
	return later ? m->points[later - 1] : (struct model_shm_made){ 0 };
}

void shm_files_fini(struct shm_files *f)
{
	free(f->seen);
	free(f->makers);
	hash_index_fini(&f->index);
	*f = (struct shm_files){ 0 };
}
