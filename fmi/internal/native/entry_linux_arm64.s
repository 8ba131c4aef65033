//go:build !macrostep_portable

#include "textflag.h"

GLOBL ·enterLogABI0(SB), NOPTR|RODATA, $16
DATA ·enterLogABI0+0(SB)/8, $enterLog(SB)
DATA ·enterLogABI0+8(SB)/8, $enterPlainLog(SB)

// enterLog is called with the arguments of the logger, which stay as they are.
TEXT enterLog(SB), NOSPLIT|NOFRAME, $0
	MOVD $·logTarget(SB), R16
	MOVD 0(R16), R16
	JMP  enterGo(SB)

TEXT enterPlainLog(SB), NOSPLIT|NOFRAME, $0
	MOVD $·logTarget(SB), R16
	MOVD 8(R16), R16
	JMP  enterGo(SB)

// enterGo goes on at R16.
TEXT enterGo(SB), NOSPLIT|NOFRAME, $0
	MOVD  $·alone(SB), R17
	MOVD  (R17), R17
	MOVWU (R17), R17
	CBZ   R17, forked
	JMP   (R16)

forked:
	MOVD $127, R0 // forkExit
	MOVD $94, R8  // exit_group
	SVC
	BRK
