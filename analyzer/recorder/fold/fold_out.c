/* The slots that a window is written as. */
#include "analyzer/recorder/fold/fold_window_internal.h"

#include <stdlib.h>
#include <string.h>

int fold_put_fold(struct fold_out *out, const struct mt_event *slot, const struct mt_ext_device *ext, uint32_t ring)
{
	struct mt_event second;
	memcpy(&second, ext, sizeof(second));
	second.kind = MT_EXT;
	int e = fold_put(out, slot, ring);
	return e ? e : fold_put(out, &second, ring);
}

void fold_out_fini(struct fold_out *out)
{
	free(out->slots);
	free(out->rings);
	*out = (struct fold_out){ 0 };
}
