#include "textflag.h"

GLOBL ·faultHandler(SB), NOPTR|RODATA, $8
DATA ·faultHandler(SB)/8, $onFault(SB)

GLOBL ·faultReturn(SB), NOPTR|RODATA, $8
DATA ·faultReturn(SB)/8, $afterFault(SB)

// void onFault(int signal, siginfo_t *info, void *context)
TEXT onFault(SB), NOSPLIT|NOFRAME, $0
	CMPL 8(SI), $0 // si_code; not above 0 if the signal was sent
	JLE sent
	MOVQ ·faultPlace(SB), AX
	MOVQ 16(SI), CX // si_addr
	MOVQ CX, (AX)
	RET
sent:
	MOVL $186, AX // gettid
	SYSCALL
	MOVL AX, DI
	MOVL $11, SI // SIGSEGV, again: now it ends the process
	MOVL $200, AX // tkill
	SYSCALL
	RET

TEXT afterFault(SB), NOSPLIT|NOFRAME, $0
	MOVL $15, AX // rt_sigreturn
	SYSCALL
	INT $3 // not reached
