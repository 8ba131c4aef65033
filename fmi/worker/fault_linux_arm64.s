#include "textflag.h"

GLOBL ·faultHandler(SB), NOPTR|RODATA, $8
DATA ·faultHandler(SB)/8, $onFault(SB)

GLOBL ·faultReturn(SB), NOPTR|RODATA, $8
DATA ·faultReturn(SB)/8, $afterFault(SB)

// void onFault(int signal, siginfo_t *info, void *context)
TEXT onFault(SB), NOSPLIT|NOFRAME, $0
	MOVW 8(R1), R3 // si_code; not above 0 if the signal was sent
	CMPW $0, R3
	BLE sent
	MOVD ·faultPlace(SB), R3
	MOVD 16(R1), R4 // si_addr
	MOVD R4, (R3)
	RET
sent:
	MOVD $178, R8 // gettid
	SVC
	MOVD $11, R1 // SIGSEGV, again: now it ends the process
	MOVD $130, R8 // tkill
	SVC
	RET

TEXT afterFault(SB), NOSPLIT|NOFRAME, $0
	MOVD $139, R8 // rt_sigreturn
	SVC
	BRK // not reached
