/* Symbolizes addresses of small libraries that are compiled here, so that the answers are known. */
#include "analyzer/symbols/module/demangle.h"
#include "analyzer/symbols/module/symbols.h"
#include "tests/unit/test.h"

#include <dlfcn.h>
#include <elfutils/libdwelf.h>
#include <elfutils/libdwfl.h>
#include <fcntl.h>
#include <stdarg.h>
#include <sys/mman.h>
#include <time.h>
#include <unistd.h>

static char dir[] = "/tmp/memtrace-symbols-XXXXXX";

__attribute__((constructor)) static void make_dir(void)
{
	if (!mkdtemp(dir))
		abort();
}

__attribute__((destructor)) static void remove_dir(void)
{
	char command[256];
	snprintf(command, sizeof(command), "rm -rf %s", dir);
	if (system(command) != 0)
		perror(command);
}

__attribute__((format(printf, 1, 2))) static int shell(const char *format, ...)
{
	char command[2048], inside[1800];
	va_list args;
	va_start(args, format);
	vsnprintf(inside, sizeof(inside), format, args);
	va_end(args);
	snprintf(command, sizeof(command), "cd %s && %s", dir, inside);
	int status = system(command);
	if (status != 0)
		printf("# failed: %s\n", command);
	return status;
}

static void write_file(const char *name, const char *text)
{
	char path[256];
	snprintf(path, sizeof(path), "%s/%s", dir, name);
	FILE *f = fopen(path, "w");
	CHECK(f && fputs(text, f) >= 0 && fclose(f) == 0);
}

/* A library, the way the shim records it. */
struct library {
	char path[256];
	unsigned char build_id[64];
	size_t build_id_bytes;
	void *handle;
	uint64_t bias;
};

static bool read_build_id(struct library *lib)
{
	const void *id;
	int fd = open(lib->path, O_RDONLY);
	elf_version(EV_CURRENT);
	Elf *elf = elf_begin(fd, ELF_C_READ, NULL);
	ssize_t n = elf ? dwelf_elf_gnu_build_id(elf, &id) : -1;
	if (n > 0 && n <= (ssize_t)sizeof(lib->build_id))
		memcpy(lib->build_id, id, lib->build_id_bytes = (size_t)n);
	elf_end(elf);
	close(fd);
	return n > 0;
}

static bool open_library(struct library *lib, const char *name)
{
	Dl_info info;
	*lib = (struct library){ 0 };
	snprintf(lib->path, sizeof(lib->path), "%s/%s", dir, name);
	lib->handle = dlopen(lib->path, RTLD_NOW | RTLD_LOCAL);
	if (!lib->handle || !read_build_id(lib)) {
		printf("# %s\n", lib->handle ? "no build id" : dlerror());
		return false;
	}
	if (!dladdr(dlsym(lib->handle, "where"), &info))
		return false;
	lib->bias = (uint64_t)(uintptr_t)info.dli_fbase;
	return true;
}

static struct symbol_module *module_of(struct symbols *s, struct library *lib)
{
	return symbols_module(s, &(struct module_id){ .path = lib->path,
						      .build_id = lib->build_id,
						      .build_id_bytes = lib->build_id_bytes });
}

/* The return address that the library's where() hands out. */
static uint64_t where(struct library *lib)
{
	void *(*function)(void) = NULL;
	*(void **)&function = dlsym(lib->handle, "where");
	return (uint64_t)(uintptr_t)function() - lib->bias - 1;
}

static bool same(const char *a, const char *b)
{
	if (a && b && strcmp(a, b) == 0)
		return true;
	printf("# \"%s\" is not \"%s\"\n", a ? a : "(null)", b ? b : "(null)");
	return false;
}

static bool ends_with(const char *s, const char *end)
{
	return s && strlen(s) >= strlen(end) && same(s + strlen(s) - strlen(end), end);
}

#define PC   "__attribute__((noinline)) static void *pc(void) { return __builtin_return_address(0); }\n"
#define KEEP "__asm__ volatile(\"\" ::: \"memory\");" /* no tail call */

static const char c_source[] = PC "static inline __attribute__((always_inline)) void *inner(void)\n"
				  "{\n"
				  "	void *p = pc(); " KEEP "\n" /* line 4 */
				  "	return p;\n"
				  "}\n"
				  "__attribute__((noinline)) static void *hidden(void)\n"
				  "{\n"
				  "	void *p = inner(); " KEEP "\n" /* line 9 */
				  "	return p;\n"
				  "}\n"
				  "void *where(void) { void *p = hidden(); " KEEP " return p; }\n"
				  "void *rust(void) __asm__(\"_ZN4demo4heap5alloc17h0123456789abcdefE\");\n"
				  "void *rust(void) { void *p = pc(); " KEEP " return p; }\n";

static void check_inlined(struct library *lib)
{
	const struct frame *f;
	struct symbols *s = symbols_new();
	CHECK_EQ(symbols_find(s, module_of(s, lib), where(lib), &f), 2);
	CHECK(same(f[0].function, "inner") && f[0].inlined && f[0].line == 4 && ends_with(f[0].file, "/a.c"));
	CHECK(same(f[0].library, lib->path) && same(f[0].language, "c"));
	CHECK(same(f[1].function, "hidden") && !f[1].inlined && f[1].line == 9 && ends_with(f[1].file, "/a.c"));
	CHECK_EQ(f[1].offset, where(lib));
	symbols_free(s);
}

TEST(dwarf_gives_lines_and_inlined_functions)
{
	struct library lib;
	write_file("a.c", c_source);
	if (shell("cc -O2 -g -fPIC -shared -Wl,--build-id -o c.so a.c") == 0 && open_library(&lib, "c.so"))
		check_inlined(&lib);
	else
		CHECK(!"compiled");
}

TEST(separate_debug_files_are_found)
{
	struct library lib;
	write_file("a.c", c_source);
	CHECK(shell("cc -O2 -g -fPIC -shared -Wl,--build-id -o d.so a.c && objcopy --only-keep-debug d.so d.debug && "
		    "strip d.so && objcopy --add-gnu-debuglink=d.debug d.so && mkdir -p .debug && mv d.debug .debug") ==
	      0);
	if (open_library(&lib, "d.so"))
		check_inlined(&lib);
	else
		CHECK(!"compiled");
}

TEST(symbol_tables_serve_without_dwarf)
{
	struct library lib;
	const struct frame *f;
	write_file("a.c", c_source);
	CHECK(shell("cc -O2 -fPIC -shared -Wl,--build-id -o t.so a.c") == 0);
	CHECK(open_library(&lib, "t.so"));
	struct symbols *s = symbols_new();
	CHECK_EQ(symbols_find(s, module_of(s, &lib), where(&lib), &f), 1);
	CHECK(same(f->function, "hidden") && !f->file && f->line == 0);
	uint64_t rust = (uint64_t)(uintptr_t)dlsym(lib.handle, "_ZN4demo4heap5alloc17h0123456789abcdefE");
	CHECK_EQ(symbols_find(s, module_of(s, &lib), rust - lib.bias, &f), 1);
	CHECK(same(f->function, "demo::heap::alloc") && same(f->language, "rust"));
	symbols_free(s);
}

TEST(a_stripped_library_names_no_neighbour)
{
	struct library lib;
	const struct frame *f;
	write_file("a.c", c_source);
	CHECK(shell("cc -O2 -fPIC -shared -Wl,--build-id -o s.so a.c && strip s.so") == 0);
	CHECK(open_library(&lib, "s.so"));
	struct symbols *s = symbols_new();
	CHECK_EQ(symbols_find(s, module_of(s, &lib), where(&lib), &f), 1); /* in hidden(), next to where() */
	CHECK(!f->function && !f->name && same(f->library, lib.path) && f->offset == where(&lib));
	uint64_t exported = (uint64_t)(uintptr_t)dlsym(lib.handle, "where") - lib.bias;
	symbols_find(s, module_of(s, &lib), exported, &f);
	CHECK(same(f->function, "where"));
	symbols_free(s);
}

TEST(minidebuginfo_is_read)
{
	struct library lib;
	const struct frame *f;
	write_file("a.c", c_source);
	if (shell("command -v xz >/dev/null") != 0)
		return;
	CHECK(shell("cc -O2 -fPIC -shared -Wl,--build-id -o m.so a.c && objcopy --only-keep-debug m.so mini && "
		    "xz mini && strip m.so && objcopy --add-section .gnu_debugdata=mini.xz m.so") == 0);
	CHECK(open_library(&lib, "m.so"));
	struct symbols *s = symbols_new();
	symbols_find(s, module_of(s, &lib), where(&lib), &f);
	CHECK(same(f->function, "hidden"));
	symbols_free(s);
}

TEST(cxx_names_are_demangled_with_templates_and_inlining)
{
	struct library lib;
	const struct frame *f;
	write_file("a.cc", PC
		   "namespace demo {\n"
		   "template <class T> struct Box {\n"
		   "	__attribute__((always_inline)) void *grow(T) { void *p = pc(); " KEEP " return p; }\n" /* 4 */
		   /* 5 */
		   "	__attribute__((noinline)) void *push(T t, int) { void *p = grow(t); " KEEP " return p; }\n"
		   "};\n"
		   "}\n"
		   "extern \"C\" void *where(void) { demo::Box<long> b; return b.push(1, 2); }\n");
	CHECK(shell("c++ -O2 -g -fPIC -shared -Wl,--build-id -o cc.so a.cc") == 0);
	CHECK(open_library(&lib, "cc.so"));
	struct symbols *s = symbols_new();
	CHECK_EQ(symbols_find(s, module_of(s, &lib), where(&lib), &f), 2);
	CHECK(same(f[0].function, "demo::Box<long>::grow(long)") && f[0].inlined && f[0].line == 4);
	CHECK(same(f[1].function, "demo::Box<long>::push(long, int)") && f[1].line == 5);
	CHECK(same(f[1].name, "demo::Box<..>::push") && same(f[1].language, "c++"));
	symbols_free(s);
}

TEST(a_replaced_module_is_not_misread)
{
	struct library lib;
	const struct frame *f;
	write_file("a.c", c_source);
	CHECK(shell("cc -O2 -g -fPIC -shared -Wl,--build-id -o r.so a.c") == 0);
	CHECK(open_library(&lib, "r.so"));
	uint64_t address = where(&lib);
	CHECK(shell("echo 'int x;' > b.c && cc -shared -fPIC -Wl,--build-id -o new.so b.c && mv new.so r.so") == 0);
	struct symbols *s = symbols_new();
	struct symbol_module *m = module_of(s, &lib);
	CHECK_EQ(symbols_find(s, m, address, &f), 1);
	CHECK(!f->function && f->offset == address && same(f->library, lib.path));
	CHECK_EQ(symbols_state(m), SYMBOLS_REPLACED);
	symbols_free(s);
}

TEST(without_build_id_a_younger_file_counts_as_replaced)
{
	const struct frame *f;
	char path[256];
	snprintf(path, sizeof(path), "%s/n.so", dir);
	write_file("a.c", c_source);
	CHECK(shell("cc -O2 -fPIC -shared -Wl,--build-id=none -o n.so a.c") == 0);
	struct symbols *s = symbols_new();
	struct symbol_module *m = symbols_module(s, &(struct module_id){ .path = path, .seen_ns = 1000000000 });
	symbols_find(s, m, 0x1100, &f);
	CHECK_EQ(symbols_state(m), SYMBOLS_REPLACED);
	symbols_free(s);
}

TEST(what_is_no_file_has_no_symbols)
{
	static const char *const paths[] = { "[vdso]", "/nowhere/lib.so", "/dev/zero", "/etc/passwd", "" };
	const struct frame *f;
	struct symbols *s = symbols_new();
	for (size_t i = 0; i < sizeof(paths) / sizeof(*paths); i++) {
		struct symbol_module *m = symbols_module(s, &(struct module_id){ .path = paths[i] });
		CHECK_EQ(symbols_find(s, m, 0x1234, &f), 1);
		CHECK(!f->function && f->offset == 0x1234 && same(f->library, paths[i]));
		CHECK(symbols_state(m) != SYMBOLS_READ || strcmp(paths[i], "/etc/passwd") == 0);
	}
	CHECK_EQ(symbols_find(s, NULL, 0x7f0000001234, &f), 1);
	CHECK(!f->library && f->offset == 0x7f0000001234);
	symbols_free(s);
}

static unsigned *files_opened; /* shared with the process that reads them */

/* Instead of libdw's own: counts how often a file is read from its beginning. */
Dwfl *dwfl_begin(const Dwfl_Callbacks *callbacks)
{
	Dwfl *(*next)(const Dwfl_Callbacks *) = NULL;
	*(void **)&next = dlsym(RTLD_NEXT, "dwfl_begin");
	if (files_opened)
		++*files_opened;
	return next(callbacks);
}

#define MIXED_PARTS 100  /* of each unit */
#define MIXED_NOPS  1200 /* in each part; an instruction a line */

/* Two units of 120,000 lines, whose parts the linker puts one after the other in turn. */
static bool make_mixed_units(struct library *lib)
{
	static const char part[] =
		"awk -v unit=%d 'BEGIN { for (i = 0; i < %d; i++) { printf \".section .text.sorted.%%05d,\\\"ax\\\"\\n\", 2 * i + unit;"
		" if (i + unit == 0) print \".globl where\\n.type where,@function\\nwhere:\";"
		" for (k = 0; k < %d; k++) print \"nop\" } }' >%s && cc -g -c %s";
	return shell(part, 0, MIXED_PARTS, MIXED_NOPS, "even.s", "even.s") == 0 &&
	       shell(part, 1, MIXED_PARTS, MIXED_NOPS, "odd.s", "odd.s") == 0 &&
	       shell("cc -shared -Wl,--build-id -Wl,-z,noexecstack -o mixed.so even.o odd.o") == 0 &&
	       open_library(lib, "mixed.so");
}

static void check_mixed(const struct symbol_place *place, uint64_t start)
{
	uint64_t part = (place->address - start) / MIXED_NOPS;
	CHECK_EQ(place->count, 1);
	CHECK(place->frames[0].line > part / 2 * MIXED_NOPS &&
	      ends_with(place->frames[0].file, part % 2 ? "/odd.s" : "/even.s"));
}

TEST(a_large_unit_is_read_once_for_all_its_addresses)
{
	struct symbol_place places[2 * MIXED_PARTS];
	struct library lib;
	struct symbols *s = symbols_new();
	if (!make_mixed_units(&lib)) {
		CHECK(!"compiled");
		return;
	}
	uint64_t start = (uint64_t)(uintptr_t)dlsym(lib.handle, "where") - lib.bias;
	for (size_t i = 0; i < 2 * MIXED_PARTS; i++)
		places[i] =
			(struct symbol_place){ .module = module_of(s, &lib), .address = start + i * MIXED_NOPS + 7 };
	files_opened = mmap(NULL, sizeof(*files_opened), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	CHECK(files_opened != MAP_FAILED);
	symbols_look_ahead(s, places, 2 * MIXED_PARTS, NULL);
	CHECK_EQ(*files_opened, 2); /* the second unit is read after the first was given back */
	for (size_t i = 0; i < 2 * MIXED_PARTS; i++)
		check_mixed(&places[i], start);
	symbols_free(s);
}

TEST(names_are_shortened)
{
	static const char *const pairs[][2] = {
		{ "foo.isra.0", "foo" },
		{ "main", "main" },
		{ "at::native::empty_cpu(c10::ArrayRef<long>, std::optional<bool>)", "at::native::empty_cpu" },
		{ "void std::vector<int, std::allocator<int> >::emplace_back<int&>(int&)",
		  "std::vector<..>::emplace_back<..>" },
		{ "foo(int)::{lambda(int)#1}::operator()(int) const", "foo::{lambda#1}::operator()" },
		{ "Baz::qux(int) const::{lambda()#2}::operator()() const", "Baz::qux::{lambda#2}::operator()" },
		{ "operator new[](unsigned long)", "operator new[]" },
		{ "Foo::operator bool() const", "Foo::operator bool" },
		{ "std::ostream& std::operator<< <int>(std::ostream&, char const*)", "std::operator<<<..>" },
		{ "char const* foo<int>(int)", "foo<..>" },
		{ "decltype(auto) (anonymous namespace)::bar<int>(int) [clone .constprop.0]", "(anon)::bar<..>" },
		{ "<alloc::vec::Vec<T> as core::iter::Extend>::extend",
		  "<alloc::vec::Vec<T> as core::iter::Extend>::extend" },
		{ "void (*foo<int>(int))(char)", "void (*foo<int>(int))(char)" },
		{ "a<<<<", "a<..>" },
	};
	for (size_t i = 0; i < sizeof(pairs) / sizeof(*pairs); i++) {
		char *name = name_shorten(pairs[i][0]);
		CHECK(same(name, pairs[i][1]));
		free(name);
	}
}

TEST(rust_names_are_told_from_cxx)
{
	char *v0 = name_demangle("_RNvCs1234_7mycrate3foo");
	CHECK(same(v0, "mycrate::foo"));
	free(v0);
	CHECK(same(name_language("_ZN4core3ptr13drop_in_place17h0123456789abcdefE"), "rust"));
	CHECK(same(name_language("_ZN2at5emptyEv"), "c++"));
	CHECK(!name_language("main") && !name_demangle("main"));
}

/* f(A<int, int>, A<the first, the first>, A<the second, the second>, ...): twice as long with each. */
TEST(a_name_that_grows_without_bounds_is_cut)
{
	char symbol[512] = "_Z1f1AIiiE";
	for (int i = 0; i < 26; i++) {
		char digit[2] = { (char)(i < 10 ? '0' + i : 'A' + i - 10), 0 };
		snprintf(symbol + strlen(symbol), sizeof(symbol) - strlen(symbol), "S_IS%s_S%s_E", digit, digit);
	}
	struct timespec begin, end;
	clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &begin);
	char *name = name_demangle(symbol);
	clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &end);
	CHECK(name && strlen(name) == 8192 && strncmp(name, "f(A<int, int>, A<A<int, int>, A<int, int> >, ", 44) == 0);
	CHECK(end.tv_sec - begin.tv_sec <= 1);
	free(name);
}

TEST_MAIN
