/* Asks for snapshots from all rooms; who takes them is handed down by the room that knows the interpreter. */
#include "shim/base/holders.h"

uint32_t mt_holders_on, mt_holders_ready;

void mt_holders_meet(const struct mt_symbols *s, uint32_t version, const struct mt_pylayout *layout)
{
	MT_SET_EACH (mt_holders_taker, t)
		(*t)->meet(s, version, layout);
}

void mt_holders_forget(void)
{
	MT_SET_EACH (mt_holders_taker, t)
		(*t)->forget();
}

void mt_holders_ask(enum mt_hold_why why, const char *name)
{
	MT_SET_EACH (mt_holders_taker, t)
		(*t)->ask(why, name);
}

void mt_holders_note_main(uintptr_t code)
{
	MT_SET_EACH (mt_holders_taker, t)
		(*t)->note_main(code);
}

void mt_holders_leave(void)
{
	if (mt_holders_on)
		MT_SET_EACH (mt_holders_taker, t)
			(*t)->leave();
}
