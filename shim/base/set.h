/*
 * What rooms above hand down to one below, which doesn't know them: a set of rows that the linker gathers. The room
 * below declares the set, each room above adds its row where the row is, and the room below goes through them.
 *
 * The set is made when the library is linked: it is whole before the first constructor runs, in the child of any fork
 * and in a signal handler, and there is no moment at which it has to be filled. Nobody writes to it. Its rows have no
 * order.
 *
 *	struct mt_colour { ... };
 *	MT_SET(mt_colour);              in the header below
 *	MT_SET_EACH(mt_colour, c)       for each row: (*c)->...
 *	MT_SET_ADD(mt_colour, green);   above, behind static const struct mt_colour green = { ... }
 */
#ifndef MT_BASE_SET_H
#define MT_BASE_SET_H

/* The linker defines both for a section whose name is a C identifier. A set that nobody adds to does not link. */
#define MT_SET(type) \
	extern const struct type *const __start_set_##type[] __attribute__((visibility("hidden"))); \
	extern const struct type *const __stop_set_##type[] __attribute__((visibility("hidden")))

#define MT_SET_ADD(type, row) \
	static const struct type *const row##_in_set __attribute__((section("set_" #type), used)) = &(row)

#define MT_SET_EACH(type, at) for (const struct type *const *at = __start_set_##type; at < __stop_set_##type; at++)

#endif
