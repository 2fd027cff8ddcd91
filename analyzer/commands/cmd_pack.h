/* Traces as one stream, for other commands. */
#ifndef MT_COMMANDS_CMD_PACK_H
#define MT_COMMANDS_CMD_PACK_H

#include "analyzer/util/options.h"

#include <stdio.h>

/* Packs the directories of `o` into `to`, which the caller closes, with every name redacted (docs/pack.md). 0 or
 * -MT_E*: one of them is still being recorded, among others. */
int pack_redacted(const struct options *o, FILE *to);

#endif
