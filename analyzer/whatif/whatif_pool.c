#include "analyzer/whatif/whatif_internal.h"
#include "analyzer/analysis/open.h"
#include "analyzer/util/output.h"

int whatif_pool(struct selection *sel, const struct whatif_asked *asked)
{
	struct whatif_question q = { .count = 0 };
	struct replay replay = { 0 };
	struct reader *r = NULL; /* whose processes the replay names */
	int e = selection_names(sel);
	if (!e)
		e = whatif_ask(&q, sel, asked);
	if (!e)
		e = reader_open_again(&r, sel->reader);
	if (!e)
		e = whatif_answer(&replay, r, sel, &q);
	output_progress_end();
	if (!e)
		e = whatif_check_changes(&q, &replay, asked);
	q.complete = reader_complete(sel->reader) && (!r || reader_complete(r));
	if (!e && sel->options->json)
		e = whatif_print_json(sel, &replay, &q);
	else if (!e)
		whatif_print(sel, &replay, &q);
	replay_fini(&replay);
	reader_close(r);
	whatif_question_fini(&q);
	return e;
}
