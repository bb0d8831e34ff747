// SPDX-License-Identifier: Apache-2.0

#include "textflag.h"

// func spin(turns int)
//
// Two instructions a turn, as on amd64: the branch decrements CTR. The addition only fills
// the turn.
TEXT ·spin(SB), NOSPLIT, $0-8
	MOVD turns+0(FP), R3
	CMP  R3, $0
	BLE  done
	MOVD R3, CTR
turn:
	ADD  $1, R3
	BDNZ turn
done:
	RET
