//go:build !macrostep_portable && (linux || darwin || freebsd || netbsd)

#include "textflag.h"

#define STAMP \
	RDTSC         \
	SHLQ $32, DX  \
	ORQ  DX, AX

// Offsets in rounds, roundMember, roundExtras and their lists: see TestRoundsLayout.

GLOBL ·runRoundsABI0(SB), NOPTR|RODATA, $8
DATA ·runRoundsABI0(SB)/8, $runRounds(SB)

// After a call a process that was forked off ends; see fork.go.
#ifdef GOOS_linux
#define ALONE \
	MOVQ ·alone(SB), CX \
	CMPL (CX), $0       \
	JEQ  forked
#else
#define ALONE
#endif

// runRounds runs on the system stack under the C ABI; DI = *rounds.
// R14 = *rounds, R12 = current member, R13 = members left in the round, BX = the
// Warnings of the member's calls, a bit each; R15 = its extras, then the current one of
// their calls.
// The frame is as that of runBatch:
// 0 R12, 8 R13, 16 R14, 24 R15, 32 BX, 40 MXCSR and 44 x87 control word on entry,
// 48 and 52 the current ones, 56 calls left in the extras.
TEXT runRounds(SB), NOSPLIT, $64-0
	MOVQ    R12, 0(SP)
	MOVQ    R13, 8(SP)
	MOVQ    R14, 16(SP)
	MOVQ    R15, 24(SP)
	MOVQ    BX, 32(SP)
	STMXCSR 40(SP)
	FSTCW   44(SP)
	MOVQ    DI, R14
	XORL    BX, BX
	MOVQ    $0, 88(R14)
	MOVQ    $0, 104(R14)
	MOVQ    $0, 112(R14)
	MOVQ    $0, 120(R14)
	STAMP
	MOVQ    AX, 128(R14)
	CMPQ    0(R14), $0
	JEQ     leave

round:
	// The times of the grid, start + i·step, rounded as Go does.
	MOVQ      8(R14), AX
	XORPS     X0, X0
	CVTSQ2SD  AX, X0
	MULSD     24(R14), X0
	ADDSD     16(R14), X0
	MOVSD     X0, 32(R14)
	MOVQ      $0, 152(R14)
	TESTQ     AX, 144(R14)
	JNZ       first
	MOVQ      $1, 152(R14)
	STAMP
	MOVQ      AX, 160(R14)

first:
	MOVQ 48(R14), R12
	MOVQ 56(R14), R13

member:
	MOVQ  R12, 96(R14)
	MOVQ  120(R12), AX
	MOVQ  AX, 176(R14)
	MOVQ  0(R12), SI
	MOVL  8(R12), CX
	TESTL CX, CX
	JZ    linear

plain:
	MOVQ 0(SI), AX
	MOVQ 8(SI), DX
	MOVQ (AX), AX
	MOVQ AX, (DX)
	ADDQ $16, SI
	DECL CX
	JNZ  plain

linear:
	MOVL  12(R12), CX
	TESTL CX, CX
	JZ    others

scale:
	MOVQ  0(SI), AX
	MOVQ  8(SI), DX
	MOVSD (AX), X0
	MULSD 16(SI), X0
	ADDSD 24(SI), X0
	MOVSD X0, (DX)
	ADDQ  $32, SI
	DECL  CX
	JNZ   scale

others:
	MOVQ  96(R12), R15
	TESTQ R15, R15
	JNZ   moves

set:
	MOVQ  16(R12), R10
	TESTQ R10, R10
	JZ    setters
	MOVQ  48(R12), DI
	MOVQ  24(R12), SI
	MOVL  32(R12), DX
	MOVQ  40(R12), CX
	MOVL  $0, 108(R14)
	CALL  R10
	ALONE
	CMPL  AX, $1
	JHI   stop
	ORL   AX, BX

setters:
	TESTQ R15, R15
	JNZ   before

do:
	MOVQ  56(R12), R10
	TESTQ R10, R10
	JZ    next
	MOVSD 40(R14), X1
	MOVSD 32(R14), X0
	MOVQ  48(R12), DI
	MOVL  92(R12), SI
	MOVL  $1, 108(R14)
	CALL  R10
	ALONE
	CMPL  AX, $1
	JHI   stop
	LEAL  0(BX)(AX*4), BX

	MOVQ  64(R12), R10
	TESTQ R10, R10
	JZ    got
	MOVQ  48(R12), DI
	MOVQ  72(R12), SI
	MOVL  36(R12), DX
	MOVQ  80(R12), CX
	MOVL  $2, 108(R14)
	CALL  R10
	ALONE
	CMPL  AX, $1
	JHI   stop
	LEAL  0(BX)(AX*8), BX

	// A number whose exponent is all ones is none.
	MOVL  88(R12), CX
	TESTL CX, CX
	JZ    got
	MOVQ  80(R12), SI
	MOVQ  $0xFFE0000000000000, DX

finite:
	MOVQ (SI), AX
	ADDQ AX, AX
	CMPQ AX, DX
	JCC  infinite
	ADDQ $8, SI
	DECL CX
	JNZ  finite

got:
	MOVQ  96(R12), R15
	TESTQ R15, R15
	JNZ   behind

modes:
	STMXCSR 48(SP)
	FSTCW   52(SP)
	MOVL    48(SP), CX
	XORL    40(SP), CX
	ANDL    $0xFFC0, CX
	MOVWLZX 52(SP), DX
	MOVWLZX 44(SP), AX
	XORL    AX, DX
	ORL     BX, CX
	ORL     DX, CX
	JNZ     unusual

judged:
	CMPQ 152(R14), $0
	JNE  sample

next:
	ADDQ $128, R12
	DECQ R13
	JNZ  member

	// The row of this round.
	CLD
	MOVQ  80(R14), R8
	TESTQ R8, R8
	JZ    ended
	MOVQ  72(R14), R9
	MOVQ  64(R14), DI

segment:
	MOVQ 0(R9), SI
	MOVQ 8(R9), CX
	CMPQ CX, $32
	JCC  long

quad:
	MOVQ (SI), AX
	MOVQ AX, (DI)
	ADDQ $8, SI
	ADDQ $8, DI
	DECQ CX
	JNZ  quad

copied:
	ADDQ $16, R9
	DECQ R8
	JNZ  segment
	MOVQ DI, 64(R14)

ended:
	INCQ 8(R14)
	INCQ 88(R14)
	CMPL 120(R14), $0
	JNE  leave
	CMPL 168(R14), $0
	JNE  leave
	DECQ 0(R14)
	JNZ  round

leave:
	MOVQ $0, 176(R14)
	STAMP
	MOVQ AX, 136(R14)
	MOVQ 0(SP), R12
	MOVQ 8(SP), R13
	MOVQ 32(SP), BX
	MOVQ 24(SP), R15
	MOVQ 16(SP), R14
	XORL AX, AX
	RET

long:
	REP; MOVSQ
	JMP  copied

infinite:
	MOVL $1, 120(R14)
	JMP  got

	// A Warning, or other modes than on entry, which are put back.
unusual:
	TESTL BX, BX
	JZ    put
	ORL   BX, 112(R12)
	MOVL  $1, 124(R14)
	XORL  BX, BX

put:
	MOVL    48(SP), CX
	XORL    40(SP), CX
	ANDL    $0xFFC0, CX
	JZ      x87
	LDMXCSR 40(SP)
	ORL     $256, 112(R12)
	MOVL    $1, 124(R14)

x87:
	MOVWLZX 52(SP), DX
	MOVWLZX 44(SP), AX
	CMPL    AX, DX
	JEQ     judged
	FLDCW   44(SP)
	ORL     $256, 112(R12)
	MOVL    $1, 124(R14)
	JMP     judged

sample:
	STAMP
	MOVQ AX, CX
	SUBQ 160(R14), CX
	ADDQ CX, 104(R12)
	MOVQ AX, 160(R14)
	JMP  next

	// What is no Real: copies, setters, getters.
moves:
	MOVL  0(R15), CX
	TESTL CX, CX
	JZ    set
	MOVQ  16(R15), SI

move:
	MOVQ  0(SI), AX
	MOVQ  8(SI), DX
	MOVL  (AX), AX
	CMPQ  16(SI), $0
	JEQ   integer
	NEGL  AX      // carry: it was not 0
	SBBL  AX, AX
	NEGL  AX

integer:
	MOVL AX, (DX)
	ADDQ $24, SI
	DECL CX
	JNZ  move
	JMP  set

before:
	MOVL  4(R15), CX
	TESTL CX, CX
	JZ    do
	MOVQ  CX, 56(SP)
	MOVQ  24(R15), R15

setter:
	MOVQ 0(R15), R10
	MOVQ 48(R12), DI
	MOVQ 8(R15), SI
	MOVQ 16(R15), DX
	MOVQ 24(R15), CX
	MOVQ 32(R15), AX
	MOVQ AX, 176(R14)
	MOVL $3, 108(R14)
	MOVQ R15, 112(R14)
	CALL R10
	ALONE
	CMPL AX, $1
	JHI  stop
	ADDL AX, AX
	ORL  AX, BX
	ADDQ $40, R15
	DECQ 56(SP)
	JNZ  setter
	JMP  do

behind:
	MOVL  8(R15), CX
	TESTL CX, CX
	JZ    modes
	MOVQ  CX, 56(SP)
	MOVQ  32(R15), R15

getter:
	MOVQ 0(R15), R10
	MOVQ 48(R12), DI
	MOVQ 8(R15), SI
	MOVQ 16(R15), DX
	MOVQ 24(R15), CX
	MOVQ 32(R15), AX
	MOVQ AX, 176(R14)
	MOVL $3, 108(R14)
	MOVQ R15, 112(R14)
	CALL R10
	ALONE
	CMPL AX, $1
	JHI  stop
	ADDL AX, AX
	ORL  AX, BX
	ADDQ $40, R15
	DECQ 56(SP)
	JNZ  getter
	JMP  modes

	// A call has failed: it stays the last one.
stop:
	MOVL    AX, 104(R14)
	MOVL    $1, 124(R14)
	ORL     BX, 112(R12)
	STMXCSR 48(SP)
	MOVL    48(SP), CX
	XORL    40(SP), CX
	ANDL    $0xFFC0, CX
	JZ      word
	LDMXCSR 40(SP)
	ORL     $256, 112(R12)

word:
	FSTCW 52(SP)
	MOVW  52(SP), CX
	CMPW  CX, 44(SP)
	JEQ   leave
	FLDCW 44(SP)
	ORL   $256, 112(R12)
	JMP   leave

#ifdef GOOS_linux
forked:
	MOVL $127, DI // forkExit
	MOVL $231, AX // exit_group
	SYSCALL
	INT  $3 // not reached

#endif
