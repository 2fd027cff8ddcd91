/* The MEMTRACE_* variables: their names, defaults and bounds, for the shim and the program alike. */
#ifndef MT_SETTINGS_H
#define MT_SETTINGS_H

#include <stdint.h>

#define MT_SETTING_PREFIX "MEMTRACE_"

enum mt_setting_kind {
	MT_SETTING_TEXT,
	MT_SETTING_SIZE,
	MT_SETTING_COUNT,
	MT_SETTING_FRAMES,
	MT_SETTING_SWITCH,
	MT_SETTING_STACKS,
	MT_SETTING_RECORD,
};

enum mt_setting {
#define SETTING(name, kind, otherwise, wrong) MT_SET_##name,
#include "format/settings.def"
#undef SETTING
	MT_SETTINGS
};

struct mt_setting_row {
	const char *name;      /* of the variable */
	const char *otherwise; /* the default, as it would be written */
	const char *wrong;     /* "is no number of bytes": of what mt_setting_read() refuses */
	enum mt_setting_kind kind;
};

extern const struct mt_setting_row mt_settings[MT_SETTINGS];

/* 0, or -1 if the text is no value of it: then *value is that of the default. A text that is NULL or empty is the
 * default, too. */
int mt_setting_read(enum mt_setting which, const char *text, uint64_t *value);

#endif
