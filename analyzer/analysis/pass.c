/* Passes over a trace, with progress on the terminal. */
#include "analyzer/analysis/open.h"
#include "analyzer/util/output.h"

int open_pass(struct reader *r, struct model **m, struct model_query *q)
{
	q->on_progress = output_progress;
	int e = model_run(m, r, q);
	output_progress_end();
	return e;
}

int selection_run_again(const struct selection *sel, struct reader **r, struct model **m, struct model_query *q)
{
	*r = NULL;
	*m = NULL;
	int e = reader_open_again(r, sel->reader);
	return e ? e : open_pass(*r, m, q);
}
