/* The table of plumbing: what it says of names that matter, and that no row of it is dead. */
#include "analyzer/symbols/stacks.h"
#include "tests/unit/test.h"

static enum frame_class class_of(const char *name)
{
	return frame_classify(&(struct frame){ .name = name, .library = "/usr/lib/libfoo.so.1" });
}

static enum frame_class class_in(const char *library)
{
	return frame_classify(&(struct frame){ .library = library });
}

TEST(names_are_classified)
{
	CHECK_EQ(class_of("malloc"), FRAME_ALLOCATOR);
	CHECK_EQ(class_of("malloc_something_of_mine"), FRAME_PLAIN);
	CHECK_EQ(class_of("std::vector<..>::push_back"), FRAME_ALLOCATOR);
	CHECK_EQ(class_of("c10::alloc_cpu"), FRAME_ALLOCATOR);
	CHECK_EQ(class_of("tsl::port::AlignedMalloc"), FRAME_ALLOCATOR);
	CHECK_EQ(class_of("os::malloc"), FRAME_ALLOCATOR);
	CHECK_EQ(class_of("AllocateHeap"), FRAME_ALLOCATOR);
	CHECK_EQ(class_of("_rjem_je_pages_map"), FRAME_ALLOCATOR);
	CHECK_EQ(class_of("os::Linux::commit_memory_impl"), FRAME_PLAIN);
	CHECK_EQ(class_of("at::_ops::linear::call"), FRAME_GLUE);
	CHECK_EQ(class_of("at::native::linear"), FRAME_PLAIN);
	CHECK_EQ(class_of("PyUnicode_New"), FRAME_OBJECT);
	CHECK_EQ(class_of("_PyEval_EvalFrameDefault"), FRAME_GLUE);
	CHECK_EQ(class_of("_PyObject_ArenaMmap"), FRAME_PLAIN);
	CHECK_EQ(class_of("<u8 as alloc::vec::spec_from_elem::SpecFromElem>::from_elem"), FRAME_ALLOCATOR);
	CHECK_EQ(class_of("__libc_start_call_main"), FRAME_START);
	CHECK_EQ(class_of("main"), FRAME_PLAIN);
}

TEST(frames_without_a_name_are_classified_by_library)
{
	CHECK_EQ(class_in("/lib/x86_64-linux-gnu/libc.so.6"), FRAME_GLUE);
	CHECK_EQ(class_in("/usr/bin/python3.11"), FRAME_GLUE);
	CHECK_EQ(class_in("/usr/lib/libfoo.so"), FRAME_PLAIN);
	CHECK_EQ(class_in(NULL), FRAME_PLAIN);
}

TEST(functions_of_the_interpreter_are_its_own_alone)
{
	struct frame f = { .name = "task_step",
			   .library = "/usr/lib/lib-dynload/_asyncio.cpython-311-x86_64-linux-gnu.so" };
	CHECK_EQ(frame_classify(&f), FRAME_GLUE);
	f.library = "/usr/bin/python3.11";
	CHECK_EQ(frame_classify(&f), FRAME_GLUE);
	f.library = "/home/me/scheduler";
	CHECK_EQ(frame_classify(&f), FRAME_PLAIN);
}

TEST(patterns_match_beginnings_or_parts)
{
	CHECK(pattern_matches("a", "a") && !pattern_matches("a", "ab") && !pattern_matches("ab", "a"));
	CHECK(pattern_matches("a*", "a") && pattern_matches("a*", "abc") && !pattern_matches("a*", "ba"));
	CHECK(pattern_matches("*b", "abc") && !pattern_matches("*b", "ac"));
}

enum what { FUNCTION, PYTHON, LIBRARY };

static const struct row {
	enum what what;
	const char *pattern;
} rows[] = {
#define RULE(class, what, pattern) { what, pattern },
#include "analyzer/symbols/frame_rules.def"
#undef RULE
};

/* A text that only this row is meant for: its pattern without the star. */
TEST(no_row_hides_a_later_one)
{
	size_t count = sizeof(rows) / sizeof(*rows);
	for (size_t later = 0; later < count; later++) {
		char text[128];
		const char *pattern = rows[later].pattern + (*rows[later].pattern == '*');
		snprintf(text, sizeof(text), "%.*s", (int)strcspn(pattern, "*"), pattern);
		for (size_t i = 0; i < later; i++)
			if (rows[i].what == rows[later].what && pattern_matches(rows[i].pattern, text)) {
				printf("# %s is hidden by %s\n", rows[later].pattern, rows[i].pattern);
				CHECK(!"hidden");
			}
	}
}

TEST_MAIN
