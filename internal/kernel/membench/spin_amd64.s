// SPDX-License-Identifier: Apache-2.0

#include "textflag.h"

// func spin(turns int)
//
// Two instructions a turn. The compiler's own loop would have three or four,
// and may one day have none.
TEXT ·spin(SB), NOSPLIT, $0-8
	MOVQ turns+0(FP), AX
	TESTQ AX, AX
	JLE  done
turn:
	DECQ AX
	JNZ  turn
done:
	RET
