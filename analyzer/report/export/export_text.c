/* Words that formats have in common. */
#include "analyzer/report/export/export.h"

#include "analyzer/util/error.h"
#include "analyzer/util/output.h"
#include "format/text.h"

#include <stdlib.h>
#include <string.h>

char *export_memory(enum model_kind kind, const struct model_device *device)
{
	return device ? output_format("%s %s", device->name, kind_name(kind)) : strdup(kind_name(kind));
}

char *export_clean(const char *text)
{
	size_t room = 4 * strlen(text) + 1;
	char *clean = malloc(room);
	if (clean)
		mt_text_clean(clean, clean + room, text);
	else
		error_memory();
	return clean;
}

char *export_frame_text(const struct frame *f)
{
	char *name = frame_text(f);
	const char *base = f->file ? strrchr(f->file, '/') : NULL;
	if (!name || !f->file || !f->line)
		return name;
	char *text = output_format("%s (%s:%u)", name, base ? base + 1 : f->file, f->line);
	free(name);
	return text ? text : (error_memory(), NULL);
}
