//go:build !macrostep_portable

#include "textflag.h"

GLOBL ·crashHandler(SB), NOPTR|RODATA, $8
DATA ·crashHandler(SB)/8, $onCrash(SB)

// Offsets in crashState: armed 0, pid 8, low 16, high 24, gos 32, slots 40, used 48,
// event 56, taken 64, signal 72, code 80, fault 88, at 96, patience 104, sp 112.
// Offsets in batch: see call_amd64.s.

// void onCrash(int signal, siginfo_t *info, ucontext_t *context)
// See CatchCrashes. DI, SI, DX and SP stay as they are for Go's handler.
TEXT onCrash(SB), NOSPLIT|NOFRAME, $0
	LEAQ ·crashes(SB), R8
	CMPQ 0(R8), $0
	JEQ  gos

	// An instruction of C code that faults, or a thread that signals itself (abort).
	MOVL 8(SI), R13 // si_code
	CMPL R13, $0
	JGT  fault
	CMPL R13, $-6   // SI_TKILL
	JNE  gos

fault:
	MOVQ 168(DX), R9 // RIP
	CMPQ R9, 16(R8)
	JB   foreign
	CMPQ R9, 24(R8)
	JB   gos

foreign:
	// A process that an FMU has forked off ends by itself.
	MOVL DI, R12
	MOVL $39, AX // getpid
	SYSCALL
	CMPL AX, 8(R8)
	JNE  die
	CMPL R13, $0
	JGT  own
	CMPL AX, 16(SI) // si_pid
	JNE  gos

own:
	// The innermost crossing of this thread: that with the lowest stack pointer.
	MOVQ 0(FS), R10
	MOVQ 40(R8), R11
	MOVQ 48(R8), CX
	XORL AX, AX

next:
	TESTQ CX, CX
	JZ    searched
	DECQ  CX
	MOVQ  (R11)(CX*8), BX
	TESTQ BX, BX
	JZ    next
	CMPQ  64(BX), R10
	JNE   next
	MOVQ  48(BX), R13
	TESTQ R13, R13
	JZ    next
	TESTQ AX, AX
	JZ    take
	CMPQ  R13, 48(AX)
	JAE   next

take:
	MOVQ BX, AX
	JMP  next

searched:
	TESTQ AX, AX
	JZ    lost

	// Go on behind mark, in runBatch.
	MOVL   DI, DI
	MOVQ   DI, 72(AX)
	MOVLQSX 8(SI), CX
	MOVQ   CX, 80(AX)
	MOVQ   16(SI), CX
	MOVQ   CX, 88(AX)
	MOVQ   R9, 96(AX)
	MOVQ   160(DX), CX
	MOVQ   CX, 104(AX)
	MOVQ   48(AX), CX
	MOVQ   CX, 160(DX)       // RSP
	MOVQ   56(AX), CX
	MOVQ   CX, 168(DX)       // RIP
	MOVQ   AX, 88(DX)        // R14
	MOVQ   $1, 144(DX)       // RAX
	ANDQ   $~0x40500, 176(DX) // EFLAGS: no trap, direction or alignment check
	MOVQ   $0, 48(AX)
	RET

lost:
	// A thread of Go's has a stack for signals; this one is the FMU's.
	TESTL $2, 24(DX) // SS_DISABLE
	JZ    gos
	MOVL  $1, AX
	XCHGQ AX, 64(R8)
	TESTQ AX, AX
	JNZ   park
	MOVQ  R12, 72(R8)
	MOVLQSX 8(SI), CX
	MOVQ  CX, 80(R8)
	MOVQ  16(SI), CX
	MOVQ  CX, 88(R8)
	MOVQ  R9, 96(R8)
	MOVQ  160(DX), CX
	MOVQ  CX, 112(R8)
	MOVQ  56(R8), DI
	LEAQ  64(R8), SI // it is 1
	MOVL  $8, DX
	MOVL  $1, AX     // write
	SYSCALL

park:
	// The program ends meanwhile; if it cannot, the signal does it.
	SUBQ $40, SP
	MOVQ 104(R8), AX
	MOVQ AX, 0(SP)
	MOVQ $0, 8(SP)
	MOVQ SP, DI
	XORL SI, SI
	MOVL $35, AX // nanosleep
	SYSCALL
	ADDQ $40, SP

die:
	// By the signal, which waits until this handler is left.
	SUBQ $40, SP
	MOVQ $0, 0(SP)   // a struct sigaction with SIG_DFL
	MOVQ $0, 8(SP)
	MOVQ $0, 16(SP)
	MOVQ $0, 24(SP)
	MOVL R12, DI
	MOVQ SP, SI
	XORL DX, DX
	MOVL $8, R10
	MOVL $13, AX     // rt_sigaction
	SYSCALL
	MOVL $186, AX    // gettid
	SYSCALL
	MOVL AX, DI
	MOVL R12, SI
	MOVL $200, AX    // tkill
	SYSCALL
	ADDQ $40, SP
	RET

gos:
	MOVQ 32(R8), AX
	JMP  AX
