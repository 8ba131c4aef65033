//go:build amd64 || arm64

package worker

import (
	"bytes"
	"fmt"
	"os"
	"syscall"
	"unsafe"

	"github.com/macrostep/macrostep/fmi/process"
)

// faultHandler is the address of onFault, a handler of signals as C has them, and
// faultReturn that of what follows on a handler.
var faultHandler, faultReturn uintptr

// faultPlace is where onFault notes the address of a fault.
//
//lint:ignore U1000 it is read in assembly
var faultPlace uintptr

// action is the kernel's struct sigaction.
type action struct {
	handler  uintptr
	flags    uint64
	restorer uintptr
	mask     uint64
}

// Flags of an action.
const (
	withInfo     = 0x4
	withRestorer = 0x04000000
	onOwnStack   = 0x08000000
	onlyOnce     = 0x80000000
)

// noteFaults has the address at which the process of an FMU accesses memory that
// is not there noted, in memory that the master sees, before that ends the process:
// the handler acts once, and the instruction that faults then faults again. On the
// threads that an FMU makes for itself the handler has no stack when there is none
// left, and nothing is noted.
func noteFaults(s *shared) error {
	if s == nil {
		return nil
	}
	top, err := topOfStack()
	if err != nil {
		return err
	}
	size := process.ThreadStack() // the main one's too
	s.c.stackEnd.Store(top - size)
	s.c.stack.Store(size)
	faultPlace = uintptr(unsafe.Pointer(&s.c.fault))
	a := action{handler: faultHandler, flags: withInfo | withRestorer | onOwnStack | onlyOnce, restorer: faultReturn}
	if _, _, e := syscall.RawSyscall6(syscall.SYS_RT_SIGACTION, uintptr(syscall.SIGSEGV), uintptr(unsafe.Pointer(&a)), 0, 8, 0, 0); e != 0 {
		return e
	}
	return nil
}

// topOfStack gives the address from which the stack of the main thread grows down.
func topOfStack() (uint64, error) {
	maps, err := os.ReadFile("/proc/self/maps")
	if err != nil {
		return 0, err
	}
	for line := range bytes.Lines(maps) {
		var from, to uint64
		if !bytes.HasSuffix(bytes.TrimSpace(line), []byte("[stack]")) {
			continue
		}
		if _, err := fmt.Sscanf(string(line), "%x-%x ", &from, &to); err == nil {
			return to, nil
		}
	}
	return 0, fmt.Errorf("/proc/self/maps does not tell where the stack is")
}
