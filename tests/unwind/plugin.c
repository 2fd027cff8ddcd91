/* Built twice, with frames of different size at the same addresses: -DROOM=... */
#ifndef ROOM
#define ROOM 64
#endif

void plugin_call(void (*f)(void))
{
	volatile char room[ROOM];

	room[0] = 1;
	f();
	room[1] = room[0];
}
