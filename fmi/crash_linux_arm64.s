//go:build !macrostep_portable

#include "textflag.h"

GLOBL ·crashHandler(SB), NOPTR|RODATA, $8
DATA ·crashHandler(SB)/8, $onCrash(SB)

// Offsets in crashState: armed 0, pid 8, low 16, high 24, gos 32, slots 40, used 48,
// event 56, taken 64, signal 72, code 80, fault 88, at 96, patience 104, sp 112.
// Offsets in batch: see call_arm64.s.

// void onCrash(int signal, siginfo_t *info, ucontext_t *context)
// See CatchCrashes. R0, R1, R2, LR and RSP stay as they are for Go's handler.
TEXT onCrash(SB), NOSPLIT|NOFRAME, $0
	MOVD $·crashes(SB), R3
	MOVD 0(R3), R4
	CBZ  R4, gos

	// An instruction of C code that faults, or a thread that signals itself (abort).
	MOVW 8(R1), R14 // si_code
	CMPW $0, R14
	BGT  fault
	CMNW $6, R14    // SI_TKILL is -6
	BNE  gos

fault:
	MOVD 440(R2), R9 // PC
	MOVD 16(R3), R4
	CMP  R4, R9
	BLO  foreign
	MOVD 24(R3), R4
	CMP  R4, R9
	BLO  gos

foreign:
	// A process that an FMU has forked off ends by itself.
	MOVD R0, R12
	MOVD $172, R8 // getpid
	SVC
	MOVD R0, R4
	MOVD R12, R0
	MOVD 8(R3), R5
	CMP  R5, R4
	BNE  die
	CMPW $0, R14
	BGT  own
	MOVWU 16(R1), R5 // si_pid
	CMP  R5, R4
	BNE  gos

own:
	// The innermost crossing of this thread: that with the lowest stack pointer.
	MRS  TPIDR_EL0, R10
	MOVD 40(R3), R11
	MOVD 48(R3), R5
	MOVD ZR, R4

next:
	CBZ  R5, searched
	SUB  $1, R5
	MOVD (R11)(R5<<3), R6
	CBZ  R6, next
	MOVD 64(R6), R7
	CMP  R10, R7
	BNE  next
	MOVD 48(R6), R7
	CBZ  R7, next
	CBZ  R4, take
	MOVD 48(R4), R13
	CMP  R13, R7
	BHS  next

take:
	MOVD R6, R4
	B    next

searched:
	CBZ R4, lost

	// Go on behind mark, in runBatch.
	MOVWU R0, R5
	MOVD R5, 72(R4)
	MOVW 8(R1), R5
	MOVD R5, 80(R4)
	MOVD 16(R1), R5
	MOVD R5, 88(R4)
	MOVD R9, 96(R4)
	MOVD 432(R2), R5
	MOVD R5, 104(R4)
	MOVD 48(R4), R5
	MOVD R5, 432(R2) // SP
	MOVD 56(R4), R5
	MOVD R5, 440(R2) // PC
	MOVD R4, 336(R2) // R19
	MOVD $1, R5
	MOVD R5, 184(R2) // R0
	MOVD ZR, 48(R4)
	RET

lost:
	// A thread of Go's has a stack for signals; this one is the FMU's.
	MOVWU 24(R2), R4
	TBZ   $1, R4, gos // SS_DISABLE
	ADD   $64, R3, R4
	MOVD  $1, R5

claim:
	LDAXR (R4), R6
	CBNZ  R6, park
	STLXR R5, (R4), R7
	CBNZ  R7, claim
	MOVD  R12, 72(R3)
	MOVW  8(R1), R5
	MOVD  R5, 80(R3)
	MOVD  16(R1), R5
	MOVD  R5, 88(R3)
	MOVD  R9, 96(R3)
	MOVD  432(R2), R5
	MOVD  R5, 112(R3)
	MOVD  56(R3), R0
	MOVD  R4, R1 // it is 1
	MOVD  $8, R2
	MOVD  $64, R8 // write
	SVC

park:
	// The program ends meanwhile; if it cannot, the signal does it.
	SUB  $32, RSP
	MOVD 104(R3), R4
	MOVD R4, 0(RSP)
	MOVD ZR, 8(RSP)
	MOVD RSP, R0
	MOVD ZR, R1
	MOVD $101, R8 // nanosleep
	SVC
	ADD  $32, RSP

die:
	// By the signal, which waits until this handler is left.
	SUB  $32, RSP
	MOVD ZR, 0(RSP)  // a struct sigaction with SIG_DFL
	MOVD ZR, 8(RSP)
	MOVD ZR, 16(RSP)
	MOVD ZR, 24(RSP)
	MOVD R12, R0
	MOVD RSP, R1
	MOVD ZR, R2
	MOVD $8, R3
	MOVD $134, R8    // rt_sigaction
	SVC
	MOVD $178, R8    // gettid
	SVC
	MOVD R12, R1
	MOVD $130, R8    // tkill
	SVC
	ADD  $32, RSP
	RET

gos:
	MOVD 32(R3), R4
	JMP  (R4)
