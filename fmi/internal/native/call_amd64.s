//go:build !macrostep_portable && (linux || darwin || freebsd || netbsd)

#include "textflag.h"

// Offsets in record: fn 0, ret 8, sig 16, tag 24, f 32…48, i 56…144; size 152.
// Offsets in batch: n 0, recs 8, done 16, start 24, end 32, modes 40, tag 48,
// worst 72, untimed 80, crossings 88.

GLOBL ·runBatchABI0(SB), NOPTR|RODATA, $8
DATA ·runBatchABI0(SB)/8, $runBatch(SB)

#define STAMP \
	RDTSC         \
	SHLQ $32, DX  \
	ORQ  DX, AX

// After a call a forked process ends; see fork.go.
#ifdef GOOS_linux
#define ALONE \
	MOVQ ·alone(SB), CX \
	CMPL (CX), $0       \
	JEQ  forked
#else
#define ALONE
#endif

// runBatch runs on the system stack under the C ABI; DI = *batch.
// The frame is a multiple of 16, which keeps the stack aligned for C:
// 0…40 integer arguments from the seventh on, 48 R12, 56 R13, 64 R14,
// 72 MXCSR and 76 x87 control word on entry, 80 and 84 the current ones.
TEXT runBatch(SB), NOSPLIT, $96-0
	MOVQ    R12, 48(SP)
	MOVQ    R13, 56(SP)
	MOVQ    R14, 64(SP)
	STMXCSR 72(SP)
	FSTCW   76(SP)
	MOVQ    DI, R14
	MOVQ    8(R14), R12  // current record
	MOVQ    0(R14), R13  // records left
	MOVQ    $0, 16(R14)
	MOVQ    $0, 40(R14)
	MOVQ    $0, 72(R14)
	INCQ    88(R14)
	CMPQ    80(R14), $0
	JNE     next
	STAMP
	MOVQ AX, 24(R14)
	JMP  next

loop:
	INCQ  16(R14)
	MOVQ  24(R12), AX
	MOVQ  AX, 48(R14)
	MOVQ  0(R12), R10
	TESTQ R10, R10
	JZ    modes // another instance follows
	CMPB  16(R12), $3 // SigLong
	JEQ   long

call:
	MOVQ  104(R12), AX
	MOVQ  AX, 0(SP)
	MOVSD 32(R12), X0
	MOVSD 40(R12), X1
	MOVSD 48(R12), X2
	MOVQ  56(R12), DI
	MOVQ  64(R12), SI
	MOVQ  72(R12), DX
	MOVQ  80(R12), CX
	MOVQ  88(R12), R8
	MOVQ  96(R12), R9
	XORL  AX, AX
	CALL  R10
	ALONE
	MOVQ  AX, 8(R12)
	MOVL  AX, CX
	ORQ   CX, 72(R14)
	CMPL  AX, $1 // above Warning, unsigned
	JHI   stop

advance:
	ADDQ $152, R12
	DECQ R13

next:
	TESTQ R13, R13
	JNZ   loop

	// Before another instance is called, and at the end: restore the control bits (rounding,
	// masks, flush to zero, denormals are zero) and set sigModes in the last record if they
	// changed. Sticky flags are ignored.
modes:
	STMXCSR 80(SP)
	MOVL    80(SP), CX
	XORL    72(SP), CX
	ANDL    $0xFFC0, CX
	JZ      x87
	LDMXCSR 72(SP)
	MOVQ    $1, 40(R14)
	ORQ     $256, -136(R12) // sigModes

x87:
	FSTCW 84(SP)
	MOVW  84(SP), CX
	CMPW  CX, 76(SP)
	JEQ   direction
	FLDCW 76(SP)
	MOVQ  $1, 40(R14)
	ORQ   $256, -136(R12)

direction:
	CLD
	TESTQ R13, R13
	JNZ   stamp

	MOVQ $0, 48(R14)
	CMPQ 80(R14), $0
	JNE  leave
	STAMP
	MOVQ AX, 32(R14)

leave:
	MOVQ 48(SP), R12
	MOVQ 56(SP), R13
	MOVQ 64(SP), R14
	XORL AX, AX
	RET

stop:
	MOVQ $1, R13
	JMP  advance

stamp:
	CMPQ 80(R14), $0
	JNE  advance
	STAMP
	MOVQ AX, 8(R12)
	JMP  advance

long:
	MOVOU 112(R12), X0
	MOVOU X0, 8(SP)
	MOVOU 128(R12), X0
	MOVOU X0, 24(SP)
	MOVQ  144(R12), AX
	MOVQ  AX, 40(SP)
	JMP   call

#ifdef GOOS_linux
forked:
	MOVL $127, DI // forkExit
	MOVL $231, AX // exit_group
	SYSCALL
	INT  $3 // not reached

#endif
