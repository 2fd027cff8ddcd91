/* What memory is for: which frame of a stack decides, what lifetimes say, and what a file of rules may be. */
#include "analyzer/symbols/categories.h"
#include "analyzer/util/error.h"
#include "tests/lib/synth.h"
#include "tests/unit/test.h"

#define SITE "/usr/lib/python3/site-packages/"
#define ADAM SITE "torch/optim/adam.py"
#define RELU SITE "torch/nn/functional.py"

enum { FUNCTIONS = 8 };

static struct {
	struct synth synth;
	struct synth_process *p;
	uint32_t codes, functions;
	struct {
		const char *library, *name, *file;
	} function[FUNCTIONS];
	struct reader *reader;
	struct stacks *stacks;
	struct categories *categories;
} w;

static void begin(void)
{
	memset(&w, 0, sizeof(w));
	synth_begin(&w.synth);
	w.p = synth_process(&w.synth, 100, 0);
}

/* Further in than `stack`: a function of Python; one in C++, alone in its library. */
static uint32_t python(uint32_t stack, const char *file, const char *name)
{
	synth_code(w.p, ++w.codes, file, name);
	return synth_frame(w.p, stack, w.codes, 5);
}

static uint32_t native(uint32_t stack, const char *library, const char *name, const char *file)
{
	uint64_t start = ++w.functions * 0x100000ull;
	if (w.functions >= FUNCTIONS)
		abort();
	w.function[w.functions].library = library;
	w.function[w.functions].name = name;
	w.function[w.functions].file = file;
	synth_record(w.p, MT_REC_MODULE, SYNTH_START,
		     &(struct mt_rec_module){ .bias = start, .start = start, .end = start + 0x100000 },
		     sizeof(struct mt_rec_module), library, strlen(library) + 1);
	return synth_node(w.p, stack, start + 0x101);
}

/* The evaluator of CPython, in which a Python stack goes on. */
static uint32_t evaluator(uint32_t stack)
{
	return native(stack, "/usr/bin/python3", "_PyEval_EvalFrameDefault", NULL);
}

static int open_rules(const char *rules)
{
	const char *dir = w.synth.dir;
	char path[256];
	synth_path(&w.synth, "rules", path);
	if (rules)
		synth_save(&w.synth, "rules", rules, strlen(rules));
	w.p->info.exit_kind = MT_EXIT_CODE;
	w.p->info.end_ticks = SYNTH_START + 1000;
	synth_write(w.p, SYNTH_BLOCKS);
	if (reader_open(&w.reader, &dir, 1, 0) < 0)
		abort();
	w.stacks = stacks_new();
	struct symbols *s = stacks_symbols(w.stacks);
	for (uint32_t i = 1; i <= w.functions; i++)
		symbols_add_known(
			s, symbols_module(s, &(struct module_id){ .path = w.function[i].library, .build_id = "" }),
			0x100, &(struct frame){ .function = w.function[i].name, .file = w.function[i].file }, 1);
	int e = categories_new(&w.categories, w.stacks, rules ? path : NULL);
	unlink(path);
	return e;
}

static void open_all(void)
{
	if (open_rules(NULL))
		abort();
}

static const char *category(uint32_t node, uint32_t node2, enum lifetime lifetime)
{
	return category_name(
		categories_of(w.categories, stacks_of(w.stacks, reader_process(w.reader, 0), node, node2), lifetime));
}

static void end(void)
{
	categories_free(w.categories);
	stacks_free(w.stacks);
	reader_close(w.reader);
	synth_end(&w.synth);
}

#define IS(node, node2, name) \
	CHECK(!strcmp(category(node, node2, LIFETIME_UNKNOWN), name) || !printf("# %s\n", category(node, node2, 0)))

/* ---- stacks ---------------------------------------------------------------------------------------------- */

TEST(the_innermost_frame_that_says_something_decides)
{
	begin();
	uint32_t script = python(0, "/home/u/train.py", "main"), adam = python(script, ADAM, "Adam.step"),
		 relu = python(script, RELU, "relu");
	uint32_t helper = python(adam, "/home/u/x.py", "helper"), inner = python(relu, ADAM, "Adam.step");
	uint32_t load = python(script, SITE "torch/serialization.py", "load"),
		 of_load = python(load, SITE "torch/nn/parameter.py", "f");
	open_all();
	IS(0, script, "unknown");
	IS(0, adam, "optimizer");
	IS(0, helper, "optimizer");
	IS(0, relu, "activations");
	IS(0, inner, "optimizer");
	IS(0, of_load, "parameters");
	IS(0, load, "checkpoint");
	IS(0, 0, "unknown");
	end();
}

/* Native frames further in than the interpreter, then Python's, then those around the interpreter. */
TEST(code_called_from_python_decides_before_it)
{
	begin();
	uint32_t engine = native(0, "/usr/lib/libtorch.so", "torch::autograd::Engine::evaluate", NULL),
		 eval = evaluator(engine);
	uint32_t blas = native(eval, "/usr/lib/libcublas.so.12", "cublasGemm", NULL),
		 own = native(eval, "/home/u/own.so", "own", NULL);
	uint32_t script = python(0, "/home/u/train.py", "main"), relu = python(script, RELU, "relu");
	open_all();
	IS(blas, relu, "workspace");
	IS(own, relu, "activations");
	IS(own, script, "gradients"); /* the backward pass called it */
	IS(engine, 0, "gradients");
	end();
}

TEST(what_is_around_decides_before_all)
{
	begin();
	uint32_t imports = native(0, "/usr/bin/python3", "PyImport_ImportModuleLevelObject", NULL),
		 eval = evaluator(imports);
	uint32_t blas = native(eval, "/usr/lib/libcublas.so.12", "cublasCreate_v2", NULL);
	uint32_t swa = python(0, SITE "torch/optim/swa_utils.py", "AveragedModel.__init__"),
		 copied = python(swa, "/usr/lib/copy.py", "deepcopy");
	uint32_t inner = python(copied, SITE "torch/nn/parameter.py", "Parameter.__deepcopy__");
	uint32_t plain = native(0, "/home/u/own.so", "own", NULL);
	open_all();
	IS(blas, 0, "context");
	IS(blas, inner, "context");
	IS(plain, inner, "optimizer");
	IS(0, inner, "optimizer");
	end();
}

TEST(threads_are_told_by_name)
{
	begin();
	synth_text(w.p, MT_REC_THREAD, &(struct mt_rec_thread){ 1, 101 }, 8, "pt_autograd_0");
	synth_text(w.p, MT_REC_THREAD, &(struct mt_rec_thread){ 2, 102 }, 8, "python");
	uint32_t thread = synth_node(w.p, 0, MT_PY_FRAME | 1), other = synth_node(w.p, 0, MT_PY_FRAME | 2);
	w.p->nodes[thread].flags = w.p->nodes[other].flags = MT_NODE_PYTHON;
	uint32_t own = native(0, "/home/u/own.so", "own", NULL);
	w.p->info.threads = 3;
	open_all();
	IS(own, thread, "gradients");
	IS(own, other, "unknown");
	end();
}

TEST(lifetimes_decide_last)
{
	begin();
	uint32_t script = python(0, "/home/u/train.py", "main"), adam = python(script, ADAM, "Adam.step");
	open_all();
	CHECK(!strcmp(category(0, script, LIFETIME_STEP), "activations"));
	CHECK(!strcmp(category(0, script, LIFETIME_SETUP), "unknown"));
	CHECK(!strcmp(category(0, adam, LIFETIME_STEP), "optimizer"));
	end();
	begin();
	script = python(0, "/home/u/train.py", "main");
	CHECK_EQ(
		open_rules(
			"RULE(parameters, LIFETIME, \"setup\") RULE(optimizer, LIFETIME, \"first*\") RULE(caches, LIFETIME, \"st?p\")"),
		0);
	CHECK(!strcmp(category(0, script, LIFETIME_SETUP), "parameters"));
	CHECK(!strcmp(category(0, script, LIFETIME_FIRST_STEP), "optimizer"));
	CHECK(!strcmp(category(0, script, LIFETIME_STEP), "caches"));
	CHECK(!strcmp(category(0, script, LIFETIME_UNKNOWN), "unknown"));
	end();
}

/* More functions than the table of answers begins with; each of its own file, which alone decides. */
TEST(many_frames_keep_their_answers)
{
	enum { MANY = 1500 };
	static uint32_t nodes[MANY];
	begin();
	for (uint32_t i = 0; i < MANY; i++) {
		char file[64];
		snprintf(file, sizeof(file), i % 3 ? "/home/u/torch/optim/f%u.py" : "/home/u/f%u.py", i);
		nodes[i] = python(0, file, "f");
	}
	open_all();
	for (int again = 0; again < 2; again++)
		for (uint32_t i = 0, wrong = 0; i < MANY; i++) {
			wrong += strcmp(category(0, nodes[i], 0), i % 3 ? "optimizer" : "unknown") != 0;
			if (i == MANY - 1)
				CHECK_EQ(wrong, 0);
		}
	end();
}

/* ---- rules ----------------------------------------------------------------------------------------------- */

/* What one rule says of Python's "/home/u/x.py:f" called by train.py:main, and of C's x.c:fill in libx.so called by the
 * interpreter. */
static const char *by_rule(const char *rule, bool native_stack)
{
	static char said[32];
	begin();
	uint32_t main = python(0, "/home/u/train.py", "main"), f = python(main, "/home/u/x.py", "f");
	uint32_t eval = evaluator(0), fill = native(eval, "/usr/lib/libx.so", "ns::fill(int)", "/src/x.c");
	CHECK_EQ(open_rules(rule), 0);
	snprintf(said, sizeof(said), "%s", category(native_stack ? fill : 0, native_stack ? 0 : f, 0));
	end();
	return said;
}

TEST(rules_look_at_what_they_name)
{
	static const struct {
		const char *rule;
		bool python, native;
	} rows[] = {
		{ "PYTHON, \"/home/u/x.py:f\"", true, false },
		{ "PYTHON, \"*x.py:g\"", false, false },
		{ "PYTHON, \"*train.py:*\"", true, false },
		{ "NATIVE, \"ns::fill\"", false, true },
		{ "NATIVE, \"*fil\"", false, false },
		{ "NATIVE, \"ns::[ef]ill\"", false, true },
		{ "NATIVE, \"f\"", false, false },
		{ "FILE, \"/home/u/x.py\"", true, false },
		{ "FILE, \"*.c\"", false, true },
		{ "LIBRARY, \"*libx*\"", false, true },
		{ "LIBRARY, \"*x.py\"", false, false },
		{ "AROUND, \"*:main\"", true, false },
		{ "AROUND, \"_PyEval*\"", false, true },
		{ "AROUND, \"ns::fil?\"", false, true },
		{ "AROUND, \"fill\"", false, false },
		{ "THREAD, \"*\"", false, false },
		{ "LIFETIME, \"*\"", false, false },
	};
	for (size_t i = 0; i < sizeof(rows) / sizeof(*rows); i++) {
		char rule[200];
		snprintf(rule, sizeof(rule), "RULE(comm, %s)", rows[i].rule);
		bool python_is = !strcmp(by_rule(rule, false), "comm"),
		     native_is = !strcmp(by_rule(rule, true), "comm");
		if (python_is != rows[i].python || native_is != rows[i].native)
			printf("# %s\n", rule);
		CHECK(python_is == rows[i].python && native_is == rows[i].native);
	}
}

TEST(the_users_rules_come_first)
{
	begin();
	uint32_t adam = python(0, ADAM, "Adam.step"), relu = python(0, RELU, "relu");
	CHECK_EQ(
		open_rules(
			"# mine\nRULE(caches, PYTHON, \"*:*Adam*\")\n/* RULE(comm, PYTHON, \"*\")\n */ RULE(comm,\n\tPYTHON , \"*:Adam.step\" )"),
		0);
	IS(0, adam, "caches");
	IS(0, relu, "activations");
	end();
	begin();
	CHECK_EQ(open_rules(""), 0);
	end();
}

TEST(what_is_no_rule_is_said_with_its_line)
{
	static const struct {
		const char *rules, *said;
	} rows[] = {
		{ "RULES(comm, PYTHON, \"*\")", "line 1: this is no rule" },
		{ "\n\nrule(comm, PYTHON, \"*\")", "line 3: this is no rule" },
		{ "RULE comm", "this is no rule" },
		{ "/* two\nlines */\nRULE(com, PYTHON, \"*\")", "line 3: there is no such category" },
		{ "RULE(comms, PYTHON, \"*\")", "no such category" },
		{ "RULE(comm PYTHON, \"*\")", "no such category" },
		{ "# x\nRULE(comm, PYTHONS, \"*\")", "line 2: WHAT is" },
		{ "RULE(comm, PY, \"*\")", "WHAT is" },
		{ "RULE(comm, PYTHON \"*\")", "WHAT is" },
		{ "RULE(comm, PYTHON, *)", "stands in quotes" },
		{ "RULE(comm, PYTHON, \"*)\n\"", "line 1: the pattern's quote is not closed" },
		{ "RULE(comm, PYTHON, \"*\"", "a parenthesis is missing" },
		{ "RULE(comm, FILE, \"*\")\nRULE(x", "line 2" },
		{ "/* open", NULL },
	};
	for (size_t i = 0; i < sizeof(rows) / sizeof(*rows); i++) {
		begin();
		int e = open_rules(rows[i].rules);
		CHECK_EQ(e, rows[i].said ? -MT_EUSAGE : 0);
		if (rows[i].said && !strstr(error_get()->why, rows[i].said))
			printf("# \"%s\" says %s\n", rows[i].rules, error_get()->why);
		CHECK(!rows[i].said || strstr(error_get()->why, rows[i].said));
		end();
	}
	struct categories *c;
	CHECK_EQ(categories_new(&c, NULL, "/nowhere/rules"), -MT_EUSAGE);
}

TEST(labels_begin_with_a_category)
{
	CHECK_EQ(category_of_label("gradients"), CATEGORY_gradients);
	CHECK_EQ(category_of_label("gradients:layer1.weight"), CATEGORY_gradients);
	CHECK_EQ(category_of_label("gradient"), CATEGORIES);
	CHECK_EQ(category_of_label("gradientss"), CATEGORIES);
	CHECK_EQ(category_of_label("my gradients"), CATEGORIES);
	CHECK_EQ(category_of_label("unknown"), CATEGORY_unknown);
	CHECK_EQ(category_of_label("parameters:"), CATEGORY_parameters);
}

TEST_MAIN
