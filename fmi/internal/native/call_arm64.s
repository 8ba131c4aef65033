//go:build !macrostep_portable && (linux || darwin || freebsd || netbsd)

#include "textflag.h"

// Offsets in record: fn 0, ret 8, sig 16, tag 24, f 32…48, i 56…144; size 152.
// Offsets in batch: n 0, recs 8, done 16, start 24, end 32, modes 40, tag 48,
// worst 72, untimed 80, crossings 88.

GLOBL ·runBatchABI0(SB), NOPTR|RODATA, $8
DATA ·runBatchABI0(SB)/8, $runBatch(SB)

// After a call a forked process ends; see fork.go.
#ifdef GOOS_linux
#define ALONE \
	MOVD  $·alone(SB), R9 \
	MOVD  (R9), R9        \
	MOVWU (R9), R9        \
	CBZ   R9, forked
#else
#define ALONE
#endif

// runBatch runs on the system stack under the C ABI; R0 = *batch.
// Frame: 8 R19, 16 R20, 24 R21, 32 FPCR on entry.
TEXT runBatch(SB), NOSPLIT, $48-0
	MOVD R19, 8(RSP)
	MOVD R20, 16(RSP)
	MOVD R21, 24(RSP)
	MOVD FPCR, R9
	MOVD R9, 32(RSP)
	MOVD R0, R19       // batch
	MOVD 8(R19), R20   // current record
	MOVD 0(R19), R21   // records left
	MOVD ZR, 16(R19)
	MOVD ZR, 40(R19)
	MOVD ZR, 72(R19)
	MOVD 88(R19), R9
	ADD  $1, R9
	MOVD R9, 88(R19)
	MOVD 80(R19), R9
	CBNZ R9, next
	MRS  CNTVCT_EL0, R9
	MOVD R9, 24(R19)
	B    next

loop:
	MOVD  16(R19), R9
	ADD   $1, R9
	MOVD  R9, 16(R19)
	MOVD  24(R20), R9
	MOVD  R9, 48(R19)
	MOVD  0(R20), R10
	CBZ   R10, stamp
	FMOVD 32(R20), F0
	FMOVD 40(R20), F1
	FMOVD 48(R20), F2
	MOVD  56(R20), R0
	MOVD  64(R20), R1
	MOVD  72(R20), R2
	MOVD  80(R20), R3
	MOVD  88(R20), R4
	MOVD  96(R20), R5
	MOVD  104(R20), R6
	MOVBU 16(R20), R9
	CMPW  $3, R9 // SigLong
	BEQ   long
	BL    (R10)

called:
	ALONE
	MOVD R0, 8(R20)

	// Restore rounding, traps and flush to zero, and set sigModes if they changed.
	MOVD 32(RSP), R9
	MOVD FPCR, R10
	CMP  R9, R10
	BEQ  status
	MOVD R9, FPCR
	MOVD $1, R9
	MOVD R9, 40(R19)
	MOVD 16(R20), R9
	ORR  $256, R9
	MOVD R9, 16(R20)

status:
	MOVWU R0, R10
	MOVD  72(R19), R9
	ORR   R10, R9
	MOVD  R9, 72(R19)
	CMPW $1, R0 // above Warning, unsigned
	BHI  done

advance:
	ADD $152, R20
	SUB $1, R21

next:
	CBNZ R21, loop

done:
	MOVD ZR, 48(R19)
	MOVD 80(R19), R9
	CBNZ R9, leave
	MRS  CNTVCT_EL0, R9
	MOVD R9, 32(R19)

leave:
	MOVD 8(RSP), R19
	MOVD 16(RSP), R20
	MOVD 24(RSP), R21
	MOVD $0, R0
	RET

stamp:
	MOVD 80(R19), R9
	CBNZ R9, advance
	MRS  CNTVCT_EL0, R9
	MOVD R9, 8(R20)
	B    advance

// The ninth argument and those after it are at the stack pointer, where the frame has LR.
long:
	MOVD 112(R20), R7
	LDP  120(R20), (R9, R11)
	LDP  136(R20), (R12, R13)
	SUB  $32, RSP
	STP  (R9, R11), 0(RSP)
	STP  (R12, R13), 16(RSP)
	BL   (R10)
	ADD  $32, RSP
	B    called

#ifdef GOOS_linux
forked:
	MOVD $127, R0 // forkExit
	MOVD $94, R8  // exit_group
	SVC
	BRK

#endif
