#include "textflag.h"

// func modes() uint64
TEXT ·modes(SB), NOSPLIT, $8-8
	MOVQ    $0, 0(SP)
	STMXCSR 0(SP)
	FSTCW   4(SP)
	MOVQ    0(SP), AX
	MOVQ    $0xFFFF0000FFC0, CX // without the sticky flags of MXCSR
	ANDQ    CX, AX
	MOVQ    AX, ret+0(FP)
	RET

// func setModes(m uint64)
TEXT ·setModes(SB), NOSPLIT, $8-8
	MOVQ    m+0(FP), AX
	MOVQ    AX, 0(SP)
	LDMXCSR 0(SP)
	FLDCW   4(SP)
	CLD
	RET
