// SPDX-License-Identifier: Apache-2.0

#include "textflag.h"

// func spin(turns int)
//
// Two instructions a turn, as on amd64.
TEXT ·spin(SB), NOSPLIT, $0-8
	MOVD turns+0(FP), R0
	CMP  $0, R0
	BLE  done
turn:
	SUBS $1, R0, R0
	BNE  turn
done:
	RET
