#include "format/settings.h"

#include <string.h>

#include "format/format.h"
#include "format/number.h"
#include "format/output_name.h"

const struct mt_setting_row mt_settings[MT_SETTINGS] = {
#define SETTING(name, kind, otherwise, wrong) { MT_SETTING_PREFIX #name, otherwise, wrong, MT_SETTING_##kind },
#include "format/settings.def"
#undef SETTING
};

#define MOST_FRAMES 4096

struct word {
	const char *text;
	uint64_t value;
};

static const struct word switches[] = {
	{ "0", 0 },  { "1", 1 },     { "no", 0 },   { "yes", 1 }, { "off", 0 },
	{ "on", 1 }, { "false", 0 }, { "true", 1 }, { NULL, 0 },
};

static const struct word stacks[] = {
	{ "all", MT_STACKS_ALL },
	{ "sample", MT_STACKS_SAMPLE },
	{ "none", MT_STACKS_NONE },
	{ NULL, 0 },
};

static const struct word modes[] = {
	{ "all", MT_RECORD_ALL },
	{ "young", MT_RECORD_YOUNG },
	{ "auto", MT_RECORD_AUTO },
	{ "sampled", MT_RECORD_SAMPLED },
	{ NULL, 0 },
};

static int read_word(const char *text, const struct word *words, uint64_t *value)
{
	while (words->text && strcmp(words->text, text) != 0)
		words++;
	*value = words->value;
	return words->text ? 0 : -1;
}

static int read_as(enum mt_setting_kind kind, const char *text, uint64_t *value)
{
	switch (kind) {
	case MT_SETTING_SIZE:
		return mt_read_bytes(text, value);
	case MT_SETTING_COUNT:
		return mt_read_count(text, value);
	case MT_SETTING_FRAMES:
		return mt_read_count(text, value) || *value < 1 || *value > MOST_FRAMES ? -1 : 0;
	case MT_SETTING_SWITCH:
		return read_word(text, switches, value);
	case MT_SETTING_STACKS:
		return read_word(text, stacks, value);
	case MT_SETTING_RECORD:
		return read_word(text, modes, value);
	case MT_SETTING_TEXT:
		break;
	}
	*value = 0;
	return 0;
}

int mt_setting_read(enum mt_setting which, const char *text, uint64_t *value)
{
	const struct mt_setting_row *row = &mt_settings[which];
	int given = text && *text;

	if (given && read_as(row->kind, text, value) == 0)
		return 0;
	read_as(row->kind, row->otherwise, value);
	return given ? -1 : 0;
}
