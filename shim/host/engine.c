/* The hook of autograd's engine behind engine.S; what it is for: python/autograd.h. */
#include "shim/python/autograd.h"
#include "shim/trace/record.h"

/* Called by engine.S: notes who began the pass. The real function. */
void *mt_engine_enter(void);
void *mt_engine_enter(void)
{
	void *engine = mt_autograd_engine();
	uint32_t native, python;

	if (mt_record_stacks(&native, &python))
		mt_autograd_begins(native, python);
	return engine;
}
