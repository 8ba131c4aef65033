//go:build !macrostep_portable && (linux || darwin || freebsd || netbsd)

#include "textflag.h"

// Offsets in rounds, roundMember, roundExtras and their lists: see TestRoundsLayout.

GLOBL ·runRoundsABI0(SB), NOPTR|RODATA, $8
DATA ·runRoundsABI0(SB)/8, $runRounds(SB)

// After a call a process that was forked off ends; see fork.go.
#ifdef GOOS_linux
#define ALONE \
	MOVD  $·alone(SB), R9 \
	MOVD  (R9), R9        \
	MOVWU (R9), R9        \
	CBZ   R9, forked
#else
#define ALONE
#endif

// runRounds runs on the system stack under the C ABI; R0 = *rounds.
// R19 = *rounds, R20 = current member, R21 = members left in the round, R22 = the
// member's extras, then the current one of their calls, R23 = Warnings of the member's
// calls, a bit each, R24 = calls left in the extras.
// Frame: 8 R19, 16 R20, 24 R21, 32 R22, 40 R23, 48 R24, 56 FPCR on entry.
TEXT runRounds(SB), NOSPLIT, $64-0
	MOVD R19, 8(RSP)
	MOVD R20, 16(RSP)
	MOVD R21, 24(RSP)
	MOVD R22, 32(RSP)
	MOVD R23, 40(RSP)
	MOVD R24, 48(RSP)
	MOVD FPCR, R9
	MOVD R9, 56(RSP)
	MOVD R0, R19
	MOVD ZR, R23
	MOVD ZR, 88(R19)
	MOVD ZR, 104(R19)
	MOVD ZR, 112(R19)
	MOVD ZR, 120(R19)
	MRS  CNTVCT_EL0, R9
	MOVD R9, 128(R19)
	MOVD 0(R19), R9
	CBZ  R9, leave

round:
	// The times of the grid, start + i·step, rounded as Go does.
	MOVD   8(R19), R9
	FMOVD  24(R19), F2
	FMOVD  16(R19), F3
	SCVTFD R9, F0
	FMULD  F2, F0, F0
	FADDD  F3, F0, F0
	FMOVD  F0, 32(R19)
	MOVD   ZR, 152(R19)
	MOVD   144(R19), R10
	AND    R9, R10, R10
	CBNZ   R10, first
	MOVD   $1, R10
	MOVD   R10, 152(R19)
	MRS    CNTVCT_EL0, R9
	MOVD   R9, 160(R19)

first:
	MOVD 48(R19), R20
	MOVD 56(R19), R21

member:
	MOVD  R20, 96(R19)
	MOVD  120(R20), R9
	MOVD  R9, 176(R19)
	MOVD  0(R20), R9
	MOVWU 8(R20), R10
	CBZ   R10, linear

plain:
	MOVD 0(R9), R11
	MOVD 8(R9), R12
	MOVD (R11), R11
	MOVD R11, (R12)
	ADD  $16, R9
	SUB  $1, R10
	CBNZ R10, plain

linear:
	MOVWU 12(R20), R10
	CBZ   R10, others

scale:
	MOVD  0(R9), R11
	MOVD  8(R9), R12
	FMOVD (R11), F0
	FMOVD 16(R9), F1
	FMOVD 24(R9), F2
	FMULD F1, F0, F0
	FADDD F2, F0, F0
	FMOVD F0, (R12)
	ADD   $32, R9
	SUB   $1, R10
	CBNZ  R10, scale

others:
	MOVD 96(R20), R22
	CBNZ R22, moves

set:
	MOVD  16(R20), R10
	CBZ   R10, setters
	MOVD  48(R20), R0
	MOVD  24(R20), R1
	MOVWU 32(R20), R2
	MOVD  40(R20), R3
	MOVW  ZR, 108(R19)
	BL    (R10)
	ALONE
	CMPW  $1, R0
	BHI   stop
	ORRW  R0, R23, R23

setters:
	CBNZ R22, before

do:
	MOVD  56(R20), R10
	CBZ   R10, next
	FMOVD 40(R19), F1
	FMOVD 32(R19), F0
	MOVD  48(R20), R0
	MOVWU 92(R20), R1
	MOVD  $1, R9
	MOVW  R9, 108(R19)
	BL    (R10)
	ALONE
	CMPW  $1, R0
	BHI   stop
	LSLW  $2, R0, R0
	ORRW  R0, R23, R23

	MOVD  64(R20), R10
	CBZ   R10, got
	MOVD  48(R20), R0
	MOVD  72(R20), R1
	MOVWU 36(R20), R2
	MOVD  80(R20), R3
	MOVD  $2, R9
	MOVW  R9, 108(R19)
	BL    (R10)
	ALONE
	CMPW  $1, R0
	BHI   stop
	LSLW  $3, R0, R0
	ORRW  R0, R23, R23

	// A number whose exponent is all ones is none.
	MOVWU 88(R20), R10
	CBZ   R10, got
	MOVD  80(R20), R9
	MOVD  $0xFFE0000000000000, R11

finite:
	MOVD (R9), R12
	LSL  $1, R12, R12
	CMP  R11, R12
	BHS  infinite
	ADD  $8, R9
	SUB  $1, R10
	CBNZ R10, finite

got:
	MOVD 96(R20), R22
	CBNZ R22, behind

modes:
	MOVD 56(RSP), R9
	MOVD FPCR, R10
	CMP  R9, R10
	BNE  unusual
	CBNZ R23, unusual

judged:
	MOVD 152(R19), R9
	CBNZ R9, sample

next:
	ADD  $128, R20
	SUB  $1, R21
	CBNZ R21, member

	// The row of this round.
	MOVD 80(R19), R9
	CBZ  R9, ended
	MOVD 72(R19), R10
	MOVD 64(R19), R11

segment:
	MOVD 0(R10), R12
	MOVD 8(R10), R13

quad:
	MOVD.P 8(R12), R14
	MOVD.P R14, 8(R11)
	SUB    $1, R13
	CBNZ   R13, quad
	ADD    $16, R10
	SUB    $1, R9
	CBNZ   R9, segment
	MOVD   R11, 64(R19)

ended:
	MOVD  8(R19), R9
	ADD   $1, R9
	MOVD  R9, 8(R19)
	MOVD  88(R19), R9
	ADD   $1, R9
	MOVD  R9, 88(R19)
	MOVWU 120(R19), R9
	CBNZ  R9, leave
	MOVWU 168(R19), R9
	CBNZ  R9, leave
	MOVD  0(R19), R9
	SUB   $1, R9
	MOVD  R9, 0(R19)
	CBNZ  R9, round

leave:
	MOVD ZR, 176(R19)
	MRS  CNTVCT_EL0, R9
	MOVD R9, 136(R19)
	MOVD 8(RSP), R9
	MOVD 16(RSP), R20
	MOVD 24(RSP), R21
	MOVD 32(RSP), R22
	MOVD 40(RSP), R23
	MOVD 48(RSP), R24
	MOVD R9, R19
	MOVD $0, R0
	RET

infinite:
	MOVD $1, R9
	MOVW R9, 120(R19)
	B    got

	// A Warning, or other modes than on entry, which are put back.
unusual:
	MOVWU 112(R20), R11
	ORRW  R23, R11, R11
	MOVD  ZR, R23
	CMP   R9, R10
	BEQ   warned
	MOVD  R9, FPCR
	ORRW  $256, R11, R11

warned:
	MOVW R11, 112(R20)
	MOVD $1, R9
	MOVW R9, 124(R19)
	B    judged

sample:
	MRS  CNTVCT_EL0, R9
	MOVD 160(R19), R10
	MOVD R9, 160(R19)
	SUB  R10, R9, R9
	MOVD 104(R20), R10
	ADD  R9, R10, R10
	MOVD R10, 104(R20)
	B    next

	// What is no Real: copies, setters, getters.
moves:
	MOVWU 0(R22), R10
	CBZ   R10, set
	MOVD  16(R22), R9

move:
	MOVD  0(R9), R11
	MOVD  8(R9), R12
	MOVD  16(R9), R13
	MOVWU (R11), R11
	CBZ   R13, integer
	CMPW  $0, R11
	CSET  NE, R11

integer:
	MOVW R11, (R12)
	ADD  $24, R9
	SUB  $1, R10
	CBNZ R10, move
	B    set

before:
	MOVWU 4(R22), R24
	CBZ   R24, do
	MOVD  24(R22), R22

setter:
	MOVD 0(R22), R10
	MOVD 48(R20), R0
	MOVD 8(R22), R1
	MOVD 16(R22), R2
	MOVD 24(R22), R3
	MOVD 32(R22), R9
	MOVD R9, 176(R19)
	MOVD $3, R9
	MOVW R9, 108(R19)
	MOVD R22, 112(R19)
	BL   (R10)
	ALONE
	CMPW $1, R0
	BHI  stop
	LSLW $1, R0, R0
	ORRW R0, R23, R23
	ADD  $40, R22
	SUB  $1, R24
	CBNZ R24, setter
	B    do

behind:
	MOVWU 8(R22), R24
	CBZ   R24, modes
	MOVD  32(R22), R22

getter:
	MOVD 0(R22), R10
	MOVD 48(R20), R0
	MOVD 8(R22), R1
	MOVD 16(R22), R2
	MOVD 24(R22), R3
	MOVD 32(R22), R9
	MOVD R9, 176(R19)
	MOVD $3, R9
	MOVW R9, 108(R19)
	MOVD R22, 112(R19)
	BL   (R10)
	ALONE
	CMPW $1, R0
	BHI  stop
	LSLW $1, R0, R0
	ORRW R0, R23, R23
	ADD  $40, R22
	SUB  $1, R24
	CBNZ R24, getter
	B    modes

	// A call has failed: it stays the last one.
stop:
	MOVW  R0, 104(R19)
	MOVD  $1, R9
	MOVW  R9, 124(R19)
	MOVWU 112(R20), R11
	ORRW  R23, R11, R11
	MOVD  56(RSP), R9
	MOVD  FPCR, R10
	CMP   R9, R10
	BEQ   kept
	MOVD  R9, FPCR
	ORRW  $256, R11, R11

kept:
	MOVW R11, 112(R20)
	B    leave

#ifdef GOOS_linux
forked:
	MOVD $127, R0 // forkExit
	MOVD $94, R8  // exit_group
	SVC
	BRK

#endif
