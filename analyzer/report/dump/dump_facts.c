/* What is known of a process. */
#include "analyzer/report/dump/dump.h"
#include "analyzer/report/dump/dump_line.h"
#include "analyzer/model/selection/selection.h"

#include <string.h>

static void dump_limits(const struct process *p)
{
	dump_begin("limits", p->id);
	dump_label("address");
	dump_number("address_used", p->address_used);
	dump_label("of");
	dump_number("address_limit", p->address_limit);
	dump_label("data");
	dump_number("data_used", p->data_used);
	dump_label("of");
	dump_number("data_limit", p->data_limit);
	dump_label("shm");
	dump_number("shm_used", p->shm_used);
	dump_end();
}

/* It was not recorded all the time. */
static void dump_recorded(const struct process *p)
{
	dump_begin("recorded", p->id);
	dump_label("from");
	dump_number("recorded_ticks", p->recorded_ticks);
	dump_label("to");
	dump_number("stopped_ticks", p->stopped_ticks);
	dump_label("stops");
	dump_number("stops", p->stops);
	dump_label("gaps");
	dump_number("gap_ticks", p->gap_ticks);
	dump_end();
}

/* Where its parent forked it. */
static void dump_fork(const struct process *p)
{
	dump_begin("forked", p->id);
	dump_label("at");
	dump_number("node", p->fork_node);
	dump_number("node2", p->fork_node2);
	dump_end();
}

static void dump_process(const struct process *p)
{
	static const char *const stacks[] = { "all", "sample", "none" };
	dump_begin("process", p->id);
	dump_number("pid", p->pid);
	dump_number("image", p->image);
	dump_label("origin");
	dump_word("origin", p->origin == MT_ORIGIN_FORK ? "fork" : "exec");
	dump_label("parent");
	dump_number("ppid", p->ppid);
	dump_number("parent_image", p->parent_image);
	dump_label("clock");
	dump_number("clock", p->clock);
	dump_label("start");
	dump_number("start_ticks", p->start_ticks);
	dump_label("fork");
	dump_number("fork_ticks", p->fork_ticks);
	dump_label("nodes");
	dump_number("node_base", p->node_base);
	dump_number("node_end", p->node_end);
	dump_label("stacks");
	dump_word("stacks", stacks[p->stacks]);
	dump_label("depth");
	dump_number("depth", p->depth);
	dump_label("sample");
	dump_number("sample_bytes", p->sample_bytes);
	dump_label("exit");
	dump_word("exit", exit_name(p->own_exit_kind));
	dump_signed("code", p->own_exit_code);
	dump_end();
	if (p->address_limit || p->data_limit || p->shm_used)
		dump_limits(p);
	if (p->recorded_ticks || process_was_stopped(p))
		dump_recorded(p);
	if (p->fork_node)
		dump_fork(p);
}

static void dump_program(const struct process *p)
{
	dump_begin("program", p->id);
	dump_text("exe", p->exe);
	dump_list("argv", p->argv);
	dump_end();
	dump_begin("env", p->id);
	dump_list("env", p->env);
	dump_end();
	if (!p->late_count)
		return;
	dump_begin("late", p->id);
	dump_list("env", p->late);
	dump_end();
}

static void dump_module(const struct process *p, const struct process_module *m)
{
	dump_begin("module", p->id);
	dump_address("start", m->start);
	dump_address("end", m->end);
	dump_address("bias", m->bias);
	dump_number("node_from", m->node_from);
	if (m->node_until == UINT32_MAX)
		dump_none("node_until");
	else
		dump_number("node_until", m->node_until);
	dump_hex("build_id", m->build_id, m->build_id_bytes);
	dump_text("path", m->path);
	dump_end();
}

static void dump_hooks(const struct process *p)
{
	for (unsigned i = 0; i < 1024; i++) {
		const char *hook = process_hook(p, i);
		if (!strcmp(hook, "?"))
			continue;
		dump_begin("hook", p->id);
		dump_number("id", i);
		dump_text("name", hook);
		dump_end();
	}
}

static void dump_files(const struct process *p)
{
	for (unsigned i = 0; i < p->file_count; i++) {
		dump_begin("file", p->id);
		dump_number("id", p->files[i].id);
		dump_text("path", p->files[i].path);
		dump_end();
	}
}

static void dump_threads(const struct process *p)
{
	for (uint32_t i = 0; i < p->thread_end; i++) {
		const struct process_thread *t = process_thread(p, i);
		if (!t)
			continue;
		dump_begin("thread", p->id);
		dump_number("index", t->index);
		dump_number("tid", t->tid);
		dump_text("name", t->name);
		dump_end();
	}
}

static void dump_children(const struct process *p)
{
	for (unsigned i = 0; i < p->child_count; i++) {
		dump_begin("child", p->id);
		dump_number("pid", p->children[i].pid);
		dump_word("exit", exit_name(p->children[i].kind));
		dump_signed("code", p->children[i].code);
		dump_end();
	}
}

static void dump_codes(const struct process *p)
{
	for (unsigned i = 0; i < p->code_count; i++) {
		const struct process_code *c = &p->codes[i];
		dump_begin("code", p->id);
		dump_number("id", c->id);
		dump_address("version", c->version);
		dump_number("first_line", c->first_line);
		dump_text("file", c->file);
		dump_text("name", c->name);
		dump_hex("lines", c->table, c->table_bytes);
		dump_end();
	}
}

static void dump_devices(const struct process *p)
{
	for (unsigned i = 0; i < p->device_count; i++) {
		const struct process_device *d = &p->devices[i];
		dump_begin("device", p->id);
		dump_number("id", d->id);
		dump_number("backend", d->backend);
		dump_number("ordinal", d->ordinal);
		dump_number("total", d->total_bytes);
		dump_text("uuid", d->uuid);
		dump_text("name", d->name);
		dump_end();
	}
	for (uint32_t i = 1; i < process_marks(p); i++) {
		if (!*process_mark(p, i))
			continue;
		dump_begin("name", p->id);
		dump_number("id", i);
		dump_text("name", process_mark(p, i));
		dump_end();
	}
}

static void dump_nodes(const struct process *p)
{
	for (uint32_t id = p->node_base; id < p->node_end; id++) {
		const struct mt_node *n = process_node(p, id);
		if (!n)
			continue;
		dump_begin("node", p->id);
		dump_number("id", id);
		dump_number("parent", n->parent);
		dump_address("pc", n->pc);
		dump_address("flags", n->flags);
		dump_end();
	}
}

void dump_facts(const struct process *p, bool nodes)
{
	dump_process(p);
	dump_program(p);
	for (unsigned i = 0; i < p->module_count; i++)
		dump_module(p, &p->modules[i]);
	dump_hooks(p);
	dump_files(p);
	dump_threads(p);
	dump_children(p);
	dump_codes(p);
	dump_devices(p);
	if (nodes)
		dump_nodes(p);
}
