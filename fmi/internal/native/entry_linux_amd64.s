//go:build !macrostep_portable

#include "textflag.h"

GLOBL ·enterLogABI0(SB), NOPTR|RODATA, $16
DATA ·enterLogABI0+0(SB)/8, $enterLog(SB)
DATA ·enterLogABI0+8(SB)/8, $enterPlainLog(SB)

// enterLog is called with the arguments of the logger, which stay as they are.
TEXT enterLog(SB), NOSPLIT|NOFRAME, $0
	MOVQ ·logTarget+0(SB), R11
	JMP  enterGo(SB)

TEXT enterPlainLog(SB), NOSPLIT|NOFRAME, $0
	MOVQ ·logTarget+8(SB), R11
	JMP  enterGo(SB)

// enterGo goes on at R11.
TEXT enterGo(SB), NOSPLIT|NOFRAME, $0
	MOVQ ·alone(SB), R10
	CMPL (R10), $0
	JEQ  forked
	JMP  R11

forked:
	MOVL $127, DI // forkExit
	MOVL $231, AX // exit_group
	SYSCALL
	INT  $3 // not reached
