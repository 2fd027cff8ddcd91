/* DIR/symbols: what goes in comes out, and nothing that is damaged or made up does harm. */
#include "analyzer/util/error.h"
#include "analyzer/symbols/symbol_file.h"
#include "format/format.h"
#include "tests/unit/test.h"

#include <sys/stat.h>
#include <unistd.h>
#include <zlib.h>
#include <zstd.h>

static char dir[] = "/tmp/memtrace-symbol-file-XXXXXX";
static char path[64];

__attribute__((constructor)) static void make_dir(void)
{
	if (!mkdtemp(dir))
		abort();
	snprintf(path, sizeof(path), "%s/symbols", dir);
}

__attribute__((destructor)) static void remove_dir(void)
{
	unlink(path);
	rmdir(dir);
}

static const struct module_id gone = { "/nowhere/lib.so", "\1\0\3", 3, 0, false },
			      nameless = { "/nowhere/other", "", 0, 0, false };

static void tell(struct symbols *s)
{
	struct frame frames[] = {
		{ .function = "ns::inner(int)", .file = "/src/a.cc", .language = "c++", .line = 12, .inlined = true },
		{ .function = "outer", .file = "/src/a.cc", .language = "c++", .line = UINT32_MAX },
	};
	struct frame unknown = { 0 };
	CHECK_EQ(symbols_add_known(s, symbols_module(s, &gone), 0x2000, frames, 2), 0);
	CHECK_EQ(symbols_add_known(s, symbols_module(s, &gone), 0x1000, frames + 1, 1), 0);
	CHECK_EQ(symbols_add_known(s, symbols_module(s, &nameless), UINT64_MAX, &unknown, 1), 0);
}

static void check_told(struct symbols *s)
{
	const struct frame *f;
	CHECK_EQ(symbols_find(s, symbols_module(s, &gone), 0x2000, &f), 2);
	CHECK(!strcmp(f[0].function, "ns::inner(int)") && !strcmp(f[0].name, "ns::inner") && f[0].inlined &&
	      f[0].line == 12);
	CHECK(!strcmp(f[0].file, "/src/a.cc") && !strcmp(f[0].language, "c++") && !strcmp(f[0].library, gone.path));
	CHECK(!strcmp(f[1].function, "outer") && !f[1].inlined && f[1].line == UINT32_MAX && f[1].offset == 0x2000);
	CHECK_EQ(symbols_find(s, symbols_module(s, &gone), 0x1000, &f), 1);
	CHECK(!strcmp(f[0].name, "outer"));
	CHECK_EQ(symbols_find(s, symbols_module(s, &nameless), UINT64_MAX, &f), 1);
	CHECK(!f->function && !f->name && !f->file && !f->language && f->line == 0);
	CHECK_EQ(symbols_state(symbols_module(s, &gone)), SYMBOLS_UNREAD);
}

static void write_told(void)
{
	struct symbols *s = symbols_new();
	tell(s);
	CHECK_EQ(symbol_file_write(s, dir), 0);
	symbols_free(s);
}

TEST(what_is_written_is_read)
{
	struct stat st;
	write_told();
	CHECK(stat(path, &st) == 0 && (st.st_mode & 0777) == 0600);
	struct symbols *s = symbols_new();
	CHECK_EQ(symbol_file_read(s, dir), 0);
	check_told(s);
	symbols_free(s);
	CHECK_EQ(symbol_file_read(NULL, dir), 0);
}

TEST(no_file_is_no_error)
{
	unlink(path);
	CHECK_EQ(symbol_file_read(NULL, dir), 0);
}

static size_t load(uint8_t *data, size_t room)
{
	FILE *f = fopen(path, "r");
	size_t n = f ? fread(data, 1, room, f) : 0;
	if (f)
		fclose(f);
	return n;
}

static void save(const uint8_t *data, size_t n)
{
	FILE *f = fopen(path, "w");
	CHECK(f && fwrite(data, 1, n, f) == n && fclose(f) == 0);
}

TEST(every_flipped_bit_and_every_cut_is_noticed)
{
	uint8_t data[4096];
	write_told();
	size_t n = load(data, sizeof(data));
	CHECK(n > sizeof(struct mt_symbol_file));
	for (size_t bit = 0; bit < n * 8; bit++) {
		data[bit / 8] ^= (uint8_t)(1u << bit % 8);
		save(data, n);
		CHECK(symbol_file_read(NULL, dir) < 0 && !strcmp(error_get()->file, path) && error_get()->offset >= 0);
		data[bit / 8] ^= (uint8_t)(1u << bit % 8);
	}
	for (size_t cut = 0; cut < n; cut++) {
		save(data, cut);
		CHECK(symbol_file_read(NULL, dir) < 0);
	}
}

/* With a right checksum, so that the contents themselves are looked at. */
static void save_plain(const uint8_t *plain, size_t n)
{
	uint8_t data[8192];
	struct mt_symbol_file h = { .magic = MT_SYMBOLS_MAGIC, .version = MT_VERSION, .plain_bytes = n };
	h.stored_bytes = ZSTD_compress(data + sizeof(h), sizeof(data) - sizeof(h), plain, n, 1);
	memcpy(data, &h, sizeof(h));
	h.crc = (uint32_t)crc32(0, data, (uInt)(sizeof(h) + h.stored_bytes));
	memcpy(data, &h, sizeof(h));
	save(data, sizeof(h) + h.stored_bytes);
}

TEST(made_up_contents_do_no_harm)
{
	uint8_t data[4096], plain[4096];
	write_told();
	size_t stored = load(data, sizeof(data)) - sizeof(struct mt_symbol_file);
	size_t n = ZSTD_decompress(plain, sizeof(plain), data + sizeof(struct mt_symbol_file), stored);
	CHECK(!ZSTD_isError(n));
	save_plain(plain, n);
	CHECK_EQ(symbol_file_read(NULL, dir), 0);
	for (size_t i = 0; i < n; i++)
		for (int value = 0; value < 256; value += 5) {
			uint8_t was = plain[i];
			plain[i] = (uint8_t)value;
			save_plain(plain, n);
			struct symbols *s = symbols_new();
			symbol_file_read(s, dir); /* an error or not: it returns */
			symbols_free(s);
			plain[i] = was;
		}
	for (size_t cut = 0; cut < n; cut++) {
		save_plain(plain, cut);
		CHECK(symbol_file_read(NULL, dir) < 0);
	}
}

TEST_MAIN
