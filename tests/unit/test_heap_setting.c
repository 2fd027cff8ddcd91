/* What whatif --host is told, and what of a trace is taken for a process's own setting. */
#include "analyzer/replay/heap/heap_setting.h"
#include "analyzer/util/error.h"
#include "tests/unit/test.h"

#include <unistd.h>

static struct process process_of(const char *const *env, unsigned count, const struct process_module *module)
{
	return (struct process){
		.pid = 1, .name = "p", .env = env, .env_count = count, .modules = module, .module_count = module != NULL
	};
}

static bool has(const struct heap_setting *s, const char *variable)
{
	for (unsigned i = 0; i < s->count; i++)
		if (!strcmp(s->variables[i], variable))
			return true;
	return false;
}

TEST(variables_come_on_top_of_the_runs_own)
{
	static const char *const env[] = { "MALLOC_ARENA_MAX=4", "MALLOC_TRIM_THRESHOLD_=1", "OMP_NUM_THREADS=3" };
	const struct process p = process_of(env, 3, NULL);
	struct heap_setting own, s;
	CHECK_EQ(heap_setting_own(&own, &p), 0);
	CHECK_EQ(own.count, 2);
	CHECK_EQ(heap_setting_parse(&s, "MALLOC_ARENA_MAX=2 MALLOC_TOP_PAD_=0", &p), 0);
	CHECK(has(&s, "MALLOC_ARENA_MAX=2") && has(&s, "MALLOC_TRIM_THRESHOLD_=1") && has(&s, "MALLOC_TOP_PAD_=0"));
	CHECK_EQ(s.count, 3);
	CHECK(!heap_setting_is_own(&s, &own));
	heap_setting_fini(&s);
	CHECK_EQ(heap_setting_parse(&s, "MALLOC_ARENA_MAX=4", &p), 0);
	CHECK(heap_setting_is_own(&s, &own));
	heap_setting_fini(&s);
	CHECK_EQ(heap_setting_parse(&s, "malloc_trim", &p), 0);
	CHECK(s.trim && !heap_setting_is_own(&s, &own));
	heap_setting_fini(&s);
	heap_setting_fini(&own);
}

TEST(what_allocators_do_not_know_is_wrong_usage)
{
	const struct process p = process_of(NULL, 0, NULL);
	static const char *const wrong[] = { "jemaloc", "MALLOC_ARENA_MAX", "FOO=1", "LD_PRELOAD=/tmp/x.so",
					     "/no/where.so" };
	for (size_t i = 0; i < sizeof(wrong) / sizeof(*wrong); i++) {
		struct heap_setting s;
		CHECK_EQ(heap_setting_parse(&s, wrong[i], &p), -MT_EUSAGE);
		heap_setting_fini(&s);
	}
}

/* A trace is anybody's: no library that it names by a path is loaded, and no file is written where it says. */
TEST(a_trace_chooses_no_code_and_no_files)
{
	static const char *const env[] = { "MALLOC_CONF=prof:true,prof_prefix:/tmp/x", "MALLOC_CONF=narenas:2",
					   "LD_PRELOAD=/tmp/x.so" };
	char path[64];
	snprintf(path, sizeof(path), "/tmp/libjemalloc.so.%d", (int)getpid());
	FILE *file = fopen(path, "w"); /* it can be read, so it could be loaded */
	CHECK(file && !fclose(file));
	const struct process_module evil = { .path = path }, self = { .path = "/usr/lib/libc.so.6" };
	struct process p = process_of(env, 3, &self);
	struct heap_setting s;
	CHECK_EQ(heap_setting_own(&s, &p), 0);
	CHECK(s.count == 1 && has(&s, "MALLOC_CONF=narenas:2") && !*s.library);
	heap_setting_fini(&s);
	p = process_of(env, 3, &evil);
	CHECK_EQ(heap_setting_own(&s, &p), -MT_EREPLAY);
	CHECK(!*s.library);
	heap_setting_fini(&s);
	remove(path);
}

TEST_MAIN
