/* Calls a PJRT plugin (libpjrt.c) as a framework does: `pjrt HOW PLUGIN...`. Prints the plugins' own accounts, and what
 * keep() has at the end, a line of JSON for each plugin. */
#include <dlfcn.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tests/programs/libpjrt.h"

enum { POOL = 256 << 20 };

struct user {
	const struct pjrt_table *table;
	struct plug *plug;
	void *(*program)(size_t outputs, size_t bytes, int donates);
	void (*compute)(void);
	void *memory;
	size_t kept, kept_blocks;
};

static void *call(const struct user *u, enum pjrt_place place, void *args)
{
	void *error = u->table->function[place](args);
	if (error)
		u->table->function[PJRT_Error_Destroy](PJRT_ARGS(struct pjrt_one, .thing = error));
	return error;
}

static struct user load(const char *path, const char *how)
{
	struct user u = { .kept = 0 };
	void *library = dlopen(path, RTLD_NOW | RTLD_LOCAL);
	struct plug *(*self)(void) = (struct plug * (*)(void)) dlsym(library, "plug_self");
	const struct pjrt_table *(*api)(void) = (const struct pjrt_table *(*)(void))dlsym(library, "GetPjrtApi");
	u.program = (void *(*)(size_t, size_t, int))dlsym(library, "plug_program");
	u.compute = (void (*)(void))dlsym(library, "plug_compute");
	u.memory = ((void *(*)(void))dlsym(library, "plug_memory"))();
	u.plug = self();
	u.plug->functions = !strcmp(how, "short") ? PJRT_Buffer_CopyToDevice : 0;
	u.plug->missing = !strcmp(how, "missing") ? PJRT_Buffer_Delete : 0;
	u.plug->major = !strcmp(how, "major");
	u.plug->on_host = !strncmp(how, "host", 4);
	u.plug->is_rocm = strstr(how, "rocm") != NULL;
	u.plug->is_cuda = !strcmp(how, "cuda") || !strncmp(how, "pool", 4);
	u.plug->pool = !strncmp(how, "pool", 4) ? POOL : 0;
	u.plug->is_late = strstr(how, "late") != NULL;
	u.plug->temporary = strstr(how, "temporary") ? 7 << 20 : 0;
	u.plug->asks_driver_each = strstr(how, "each") != NULL;
	u.table = api();
	if (api() != u.table)
		abort();
	call(&u, PJRT_Client_Create, PJRT_ARGS(struct pjrt_Client_Create, .client = NULL));
	return u;
}

static void *from_host(const struct user *u, size_t bytes)
{
	const int64_t dims[] = { (int64_t)bytes / 4 };
	struct pjrt_Client_BufferFromHostBuffer *a =
		PJRT_ARGS(struct pjrt_Client_BufferFromHostBuffer, .dims = dims, .dim_count = 1, .memory = u->memory);
	call(u, PJRT_Client_BufferFromHostBuffer, a);
	return a->buffer;
}

static void *run(const struct user *u, void *program, void *input, void *outputs)
{
	void *const inputs[] = { input };
	void *const *const lists[] = { inputs, inputs };
	void **const out[] = { outputs, (void **)outputs + 1 };
	return call(u, PJRT_LoadedExecutable_Execute,
		    PJRT_ARGS(struct pjrt_LoadedExecutable_Execute, .executable = program, .inputs = lists,
			      .device_count = 1, .input_count = input != NULL, .outputs = out));
}

static void drop(const struct user *u, enum pjrt_place place, void *buffer)
{
	call(u, place, PJRT_ARGS(struct pjrt_one, .thing = buffer));
}

__attribute__((noinline)) void *keep(struct user *u, void *program, void *input, size_t bytes)
{
	void *buffer = NULL;
	if (run(u, program, input, &buffer))
		abort();
	u->kept += bytes;
	u->kept_blocks++;
	return buffer;
}

__attribute__((noinline)) void *lose(struct user *u, size_t bytes)
{
	u->kept += bytes;
	u->kept_blocks++;
	return from_host(u, bytes);
}

__attribute__((noinline)) void churn(struct user *u, size_t bytes)
{
	drop(u, PJRT_Buffer_Destroy, from_host(u, bytes));
}

static void ends(struct user *u)
{
	void *deleted = from_host(u, 4096), *copied = from_host(u, 8192);
	drop(u, PJRT_Buffer_Delete, deleted);
	drop(u, PJRT_Buffer_Delete, deleted);
	drop(u, PJRT_Buffer_Destroy, deleted);
	drop(u, PJRT_Buffer_Destroy, NULL);
	struct pjrt_copy *copy = PJRT_ARGS(struct pjrt_copy, .from = copied, .to = NULL);
	call(u, PJRT_Buffer_CopyToDevice, copy);
	drop(u, PJRT_Buffer_Destroy, copy->buffer);
	call(u, PJRT_Buffer_CopyToMemory, copy);
	drop(u, PJRT_Buffer_Destroy, copy->buffer);
	drop(u, PJRT_Buffer_Destroy, copied);
	const int64_t dims[] = { 1024, 4 };
	struct pjrt_Client_CreateUninitializedBuffer *empty =
		PJRT_ARGS(struct pjrt_Client_CreateUninitializedBuffer, .dims = dims, .dim_count = 2);
	call(u, PJRT_Client_CreateUninitializedBuffer, empty);
	drop(u, PJRT_Buffer_Destroy, empty->buffer);
	struct pjrt_AsyncHostToDeviceTransferManager_RetrieveBuffer *got =
		PJRT_ARGS(struct pjrt_AsyncHostToDeviceTransferManager_RetrieveBuffer, .index = 2);
	call(u, PJRT_AsyncHostToDeviceTransferManager_RetrieveBuffer, got);
	drop(u, PJRT_Buffer_Destroy, got->buffer);
}

static void views(struct user *u)
{
	const int64_t dims[] = { 1 << 20 };
	struct pjrt_Client_CreateViewOfDeviceBuffer *view =
		PJRT_ARGS(struct pjrt_Client_CreateViewOfDeviceBuffer, .dims = dims, .dim_count = 1);
	call(u, PJRT_Client_CreateViewOfDeviceBuffer, view);
	drop(u, PJRT_Buffer_Destroy, view->buffer);
}

/* Each step's input is donated to it. */
static void steps(struct user *u)
{
	void *step = u->program(1, 1 << 20, 1), *state = from_host(u, 1 << 20), *next = NULL;
	for (int i = 0; i < 50; i++) {
		if (run(u, step, state, &next))
			abort();
		drop(u, PJRT_Buffer_Destroy, state);
		state = next;
	}
	u->plug->fails = 1; /* a donated input is gone all the same */
	run(u, step, state, &next);
	drop(u, PJRT_Buffer_Destroy, state);
	u->plug->fails = 0;
	drop(u, PJRT_LoadedExecutable_Destroy, step);
}

static void errors(struct user *u)
{
	void *program = u->program(1, 4096, 0), *out = NULL;
	u->plug->fails = 1;
	for (int i = 0; i < 10; i++) {
		from_host(u, 4096);
		run(u, program, NULL, &out);
	}
	u->plug->fails = 0;
	u->plug->hides_sizes = 1;
	churn(u, 4096);
	u->plug->hides_sizes = 0;
	/* arguments that end before what we look at */
	struct pjrt_copy *cut = PJRT_ARGS(struct pjrt_copy, .from = from_host(u, 4096), .to = NULL);
	void *from = cut->from;
	cut->head.bytes = offsetof(struct pjrt_copy, buffer);
	call(u, PJRT_Buffer_CopyToDevice, cut);
	drop(u, PJRT_Buffer_Destroy, cut->buffer);
	drop(u, PJRT_Buffer_Destroy, from);
}

/* Executables at the address of one that ended, with another number of outputs. */
static void programs(struct user *u)
{
	for (size_t n = 1; n <= 4; n++) {
		void *program = u->program(n, 1000 * n, 0), *out[4];
		run(u, program, NULL, out);
		for (size_t i = 0; i < n; i++)
			drop(u, PJRT_Buffer_Destroy, out[i]);
		drop(u, PJRT_LoadedExecutable_Destroy, program);
	}
}

static void *many(void *p)
{
	struct user *u = p;
	void *some[100];
	for (int round = 0; round < 20; round++) {
		for (int i = 0; i < 100; i++)
			some[i] = from_host(u, 4096);
		for (int i = 0; i < 100; i++) {
			if (i % 3 == 0)
				drop(u, PJRT_Buffer_Delete, some[i]);
			drop(u, PJRT_Buffer_Destroy, some[i]);
		}
	}
	return NULL;
}

static void threads(struct user *u)
{
	pthread_t t[4];
	for (int i = 0; i < 4; i++)
		pthread_create(&t[i], NULL, many, u);
	for (int i = 0; i < 4; i++)
		pthread_join(t[i], NULL);
}

/* Outputs that a thread of the plugin's allocates when it computes them: whose they are is told then. */
static void host(struct user *u)
{
	void *program = u->program(1, 1 << 20, 0), *step = u->program(1, 1 << 20, 1);
	void *kept[4], *gone = NULL, *out = NULL;
	for (int i = 0; i < 4; i++)
		kept[i] = keep(u, program, NULL, 1 << 20);
	run(u, program, NULL, &gone); /* destroyed before it is computed */
	drop(u, PJRT_Buffer_Delete, gone);
	drop(u, PJRT_Buffer_Destroy, gone);
	u->compute();
	/* donated before it is computed, meanwhile, and after */
	for (int i = 0; i < 3; i++) {
		void *state = NULL;
		run(u, program, NULL, &state);
		u->plug->computes_late = i == 1;
		if (i == 2)
			u->compute();
		run(u, step, state, &out);
		drop(u, PJRT_Buffer_Destroy, state);
		u->compute();
		drop(u, PJRT_Buffer_Destroy, out);
	}
	u->plug->computes_badly = 1;
	run(u, program, kept[0], &out);
	u->compute();
	drop(u, PJRT_Buffer_Destroy, out);
	u->plug->computes_badly = 0;
}

/* Each thread's steps donate, while the plugin computes. */
static void *donating(void *p)
{
	struct user *u = p;
	void *step = u->program(1, 4096, 1);
	for (int round = 0; round < 20; round++) {
		void *state = NULL, *next = NULL;
		run(u, step, NULL, &state);
		for (int i = 0; i < 20; i++) {
			run(u, step, state, &next);
			drop(u, PJRT_Buffer_Destroy, state);
			state = next;
		}
		drop(u, PJRT_Buffer_Destroy, state);
	}
	return NULL;
}

static void host_threads(struct user *u)
{
	pthread_t t[3];
	for (int i = 0; i < 3; i++)
		pthread_create(&t[i], NULL, donating, u);
	for (int i = 0; i < 200; i++)
		u->compute();
	for (int i = 0; i < 3; i++)
		pthread_join(t[i], NULL);
	u->compute();
}

/* A call that fails at once: what each part of it says counts once. */
__attribute__((noinline)) void ask_too_much(struct user *u)
{
	void *program = u->program(1, 4096, 0), *out = NULL;
	if (from_host(u, POOL + 4) || from_host(u, POOL + 4))
		abort();
	u->plug->fails = 1;
	if (!run(u, program, NULL, &out)) /* an error of another kind is no failure */
		abort();
	u->plug->exhausts = 1;
	u->plug->wanted = 3u << 30;
	run(u, program, NULL, &out);
	u->plug->wanted = 0;
	run(u, program, NULL, &out);
	u->plug->fails = u->plug->exhausts = 0;
}

/* Calls that fail when they are computed. Their outputs never have memory; nor have those of what is computed from
 * them, which says so again. */
__attribute__((noinline)) void ask_too_much_later(struct user *u)
{
	void *huge = u->program(2, POOL + 4, 0), *step = u->program(1, 1 << 20, 0), *ends[4] = { NULL }, *out[2],
	     *next = NULL;
	for (int i = 0; i < 2; i++) {
		if (run(u, huge, NULL, out) || run(u, step, out[0], &next) || run(u, step, next, &ends[2 * i]))
			abort();
		drop(u, PJRT_Buffer_Destroy, out[1]); /* before anybody knows */
		u->compute();
		if (run(u, step, next, &ends[2 * i + 1])) /* behind */
			abort();
		drop(u, PJRT_Buffer_Delete, next);
		drop(u, PJRT_Buffer_Destroy, next);
		u->compute();
		drop(u, PJRT_Buffer_Destroy, out[0]);
	}
	for (int i = 0; i < 4; i++)
		drop(u, PJRT_Buffer_Destroy, ends[i]);
}

static void play(struct user *u, const char *how)
{
	void *program = u->program(1, 3 << 20, 0);
	int all = !strcmp(how, "all");
	if (all || !strcmp(how, "ends"))
		ends(u);
	if (all || !strcmp(how, "views"))
		views(u);
	if (all || !strncmp(how, "steps", 5))
		steps(u);
	if (all || !strcmp(how, "errors"))
		errors(u);
	if (all || !strcmp(how, "programs"))
		programs(u);
	if (all || !strcmp(how, "threads"))
		threads(u);
	if (!strncmp(how, "host", 4)) {
		if (how[4])
			host_threads(u);
		else
			host(u);
		return;
	}
	if (strstr(how, "exhausted"))
		ask_too_much(u);
	if (strstr(how, "too much"))
		ask_too_much_later(u);
	for (int i = 0; i < 20; i++)
		churn(u, 1 << 20);
	for (int i = 0; i < 5; i++)
		keep(u, program, lose(u, 1 << 16), 3 << 20);
	if (u->plug->is_late)
		u->compute();
}

int main(int argc, char **argv)
{
	for (int i = 2; i < argc; i++) {
		struct user u = load(argv[i], argv[1]);
		play(&u, argv[1]);
		printf("{\"in_use\": %zu, \"most\": %zu, \"allocations\": %zu, \"kept\": %zu, \"kept_blocks\": %zu, \"errors\": %ld, "
		       "\"executables\": %ld, \"events\": %ld, \"waited\": %ld, \"refused\": %ld, \"bytes\": %zu, \"missing\": %d}\n",
		       u.plug->in_use, u.plug->most, u.plug->allocations, u.kept, u.kept_blocks, u.plug->errors,
		       u.plug->executables, u.plug->events, u.plug->waited, u.plug->refused, u.table->head.bytes,
		       !u.table->function[PJRT_Buffer_Delete]);
	}
	return 0;
}
