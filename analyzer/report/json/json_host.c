#include "analyzer/report/json/json_host.h"

static json_t *known(uint64_t value)
{
	return value == HOST_KILL_UNKNOWN ? json_null() : json_bytes(value);
}

static json_t *json_ledger(const struct host_ledger *l)
{
	json_t *o = json_object();
	json_object_set_new(o, "at_s", json_seconds(l->ns));
	json_object_set_new(o, "of", json_string(l->cgroup ? "cgroup" : "machine"));
	json_object_set_new(o, "cgroup", json_text(l->cgroup));
	json_object_set_new(o, "total_bytes", json_bytes(l->total));
	json_object_set_new(o, "used_bytes", json_bytes(l->used));
	json_object_set_new(o, "live", json_bytes(l->live));
	json_object_set_new(o, "kept", json_bytes(l->kept));
	json_object_set_new(o, "pinned", json_bytes(l->pinned));
	json_object_set_new(o, "mapped_files", json_bytes(l->mapped_files));
	json_object_set_new(o, "shared", json_bytes(l->shared));
	json_object_set_new(o, "shm_files", json_bytes(l->shm_files));
	json_object_set_new(o, "other_processes", json_bytes(l->other_processes));
	json_object_set_new(o, "page_cache", json_bytes(l->page_cache));
	json_object_set_new(o, "kernel", json_bytes(l->kernel));
	json_object_set_new(o, "free", json_bytes(l->free));
	json_object_set_new(o, "unexplained", json_integer(l->unexplained));
	json_object_set_new(o, "live_error", json_bytes(l->live_error));
	json_object_set_new(o, "not_resident", json_bytes(l->not_resident));
	json_object_set_new(o, "copied", json_bytes(l->copied));
	json_object_set_new(o, "pool_free", json_bytes(l->pool_free));
	json_object_set_new(o, "unseen", json_bytes(l->unseen));
	json_object_set_new(o, "swapped", json_bytes(l->swapped));
	json_object_set_new(o, "estimated", json_boolean(l->estimated));
	return o;
}

static json_t *json_others(const struct host_memory *s)
{
	json_t *list = json_array();
	for (unsigned i = 0; i < host_others(s); i++) {
		const struct host_other *other = host_other(s, i);
		json_t *o = json_object();
		json_object_set_new(o, "pid", json_integer(other->pid));
		json_object_set_new(o, "name", json_text(other->name));
		json_object_set_new(o, "rss_bytes", json_bytes(other->rss));
		json_object_set_new(o, "swap_bytes", json_bytes(other->swap));
		json_array_append_new(list, o);
	}
	return list;
}

json_t *json_system(const struct host_memory *s)
{
	const struct host_facts *f = host_facts(s);
	json_t *o = json_object();
	json_object_set_new(o, "memory_bytes", known(f->memory));
	json_object_set_new(o, "limit_bytes", known(f->limit));
	json_object_set_new(o, "available_min_bytes", known(f->available_min));
	json_object_set_new(o, "swap_total_bytes", known(f->swap_total));
	json_object_set_new(o, "swap_start_bytes", known(f->swap_start));
	json_object_set_new(o, "swap_peak_bytes", known(f->swap_peak));
	json_object_set_new(o, "swapped_out_bytes", known(f->swapped_out));
	json_object_set_new(o, "oom_kills", known(f->oom_kills));
	json_object_set_new(o, "stalled_s",
			    f->stalled_ns == HOST_KILL_UNKNOWN ? json_null() : json_seconds(f->stalled_ns));
	json_object_set_new(o, "shm_bytes", known(f->shm_total));
	json_object_set_new(o, "shm_peak_bytes", known(f->shm_peak));
	json_object_set_new(o, "shm_left_bytes", known(f->shm_left));
	json_object_set_new(o, "resident_peak_bytes", known(f->traced_peak));
	json_object_set_new(o, "resident_end_bytes", known(f->traced_end));
	json_object_set_new(o, "resident_end_s",
			    f->traced_end == HOST_KILL_UNKNOWN ? json_null() : json_seconds(f->traced_end_ns));
	json_object_set_new(o, "ledger", host_ledger(s)->known ? json_ledger(host_ledger(s)) : json_null());
	json_object_set_new(o, "other_processes", json_others(s));
	return o;
}

static json_t *json_resident(const struct host_process *p)
{
	json_t *o = json_object();
	json_object_set_new(o, "rss_bytes", known(p->rss));
	json_object_set_new(o, "pss_bytes", known(p->pss));
	json_object_set_new(o, "anon_bytes", known(p->anon));
	json_object_set_new(o, "file_bytes", known(p->file));
	json_object_set_new(o, "shmem_bytes", known(p->shmem));
	json_object_set_new(o, "private_dirty_bytes", known(p->private_dirty));
	json_object_set_new(o, "swap_bytes", known(p->swap));
	json_object_set_new(o, "live_bytes", json_bytes(p->live_heap + p->live_map));
	return o;
}

void json_system_process(json_t *o, const struct host_memory *s, const struct process *p)
{
	static const char *const killed[] = {
		[HOST_NOT_KILLED] = "no", [HOST_MAYBE_KILLED] = "likely", [HOST_KILLED] = "yes"
	};
	const struct host_process *x = host_process(s, p->id);
	json_object_set_new(o, "rss_peak_bytes", known(x->rss_peak));
	json_object_set_new(o, "swap_peak_bytes", known(x->swap_peak));
	json_object_set_new(o, "unseen_map_bytes", known(x->unseen_map));
	json_object_set_new(o, "resident", x->rss == HOST_KILL_UNKNOWN ? json_null() : json_resident(x));
	json_object_set_new(json_object_get(o, "exit"), "oom_killed", json_string(killed[x->oom_killed]));
}

json_t *json_shm_maker(const struct shm_maker *m)
{
	if (!m->files)
		return json_null();
	json_t *o = json_object();
	json_object_set_new(o, "site", json_text(m->site));
	json_object_set_new(o, "pid", json_integer(m->pid));
	json_object_set_new(o, "processes", json_integer(m->processes));
	json_object_set_new(o, "files", json_bytes(m->files));
	json_object_set_new(o, "bytes", json_bytes(m->bytes));
	return o;
}
