#include "textflag.h"

// func modes() uint64
TEXT ·modes(SB), NOSPLIT, $0-8
	MOVD FPCR, R0
	MOVD R0, ret+0(FP)
	RET

// func setModes(m uint64)
TEXT ·setModes(SB), NOSPLIT, $0-8
	MOVD m+0(FP), R0
	MOVD R0, FPCR
	RET
