#include "analyzer/whatif/whatif_internal.h"
#include "analyzer/analysis/open.h"
#include "analyzer/util/output.h"

int whatif_pool(struct selection *v, const struct whatif_asked *asked)
{
	struct whatif_question q = { .count = 0 };
	struct replay replay = { 0 };
	struct reader *r = NULL; /* whose processes the replay names */
	int e = selection_names(v);
	if (!e)
		e = whatif_ask(&q, v, asked);
	if (!e)
		e = reader_open_again(&r, v->reader);
	if (!e)
		e = whatif_answer(&replay, r, v, &q);
	output_progress_end();
	if (!e)
		e = whatif_check_changes(&q, &replay, asked);
	q.complete = reader_complete(v->reader) && (!r || reader_complete(r));
	if (!e && v->options->json)
		e = whatif_print_json(v, &replay, &q);
	else if (!e)
		whatif_print(v, &replay, &q);
	replay_fini(&replay);
	reader_close(r);
	whatif_question_fini(&q);
	return e;
}
