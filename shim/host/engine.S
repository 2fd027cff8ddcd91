/*
 * torch::autograd::Engine::execute (see python/autograd.h). It takes more arguments than registers hold and returns an object, and
 * its types are not ours to know: all is left where it is, and the real function jumped to.
 */
#include "shim/arch/jump.h"

#define EXECUTE _ZN5torch8autograd6Engine7executeERKSt6vectorINS0_4EdgeESaIS3_EERKS2_IN2at6TensorESaIS9_EEbbbS7_

FUNCTION(EXECUTE)
	save
	CALL mt_engine_enter
	restore
	JUMP RESULT
END(EXECUTE)
