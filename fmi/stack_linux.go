package fmi

import (
	"fmt"
	"runtime"
	"runtime/debug"
	"sync"
	"syscall"
	"unsafe"
)

// OnLargeStack calls f on a thread whose C stack has at least LargeStack bytes,
// and returns when f does. What f calls is bound to that thread as by
// runtime.LockOSThread: the goroutine of the caller if its thread is such a one,
// else one of its own, whose panic becomes the caller's.
//
// FMUs that solve large systems on the stack want much of it, and a thread has as
// little as ulimit -s says, 2 MiB where that is unlimited. A program calls the FMUs
// in its process within f; master.Run.Run and the command line do. Where the C
// library makes no such threads (that is: not on Linux with glibc), or address
// space is short (ulimit -v), f is called on the stack that there is.
func OnLargeStack(f func()) {
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	var other <-chan ending
	if !stackIsLarge() && addressSpace() {
		other = find(f)
	}
	if other == nil {
		f()
		return
	}
	switch o := <-other; {
	case o.panicked != nil:
		panic(fmt.Sprintf("%v\n\n%s", o.panicked, o.stack))
	case !o.returned:
		runtime.Goexit()
	}
}

// ending is how a function came to its end: it returned, panicked or left its
// goroutine.
type ending struct {
	returned bool
	panicked any
	stack    []byte // of the panic
}

// enlarging is held while new threads get a large stack.
var enlarging sync.Mutex

// find begins f on a thread with a large stack and gives how it ends; nil = there
// is none. A goroutine cannot choose its thread, but as long as it holds one, others
// get another: first those that are idle, which have the stack that was usual when
// they were made, then new ones.
func find(f func()) <-chan ending {
	const most = 100 // threads that are held; more than are ever idle
	enlarging.Lock()
	defer enlarging.Unlock()
	restore, ok := setThreadStack(LargeStack + stackExtra)
	if !ok {
		return nil
	}
	defer restore()
	end := make(chan ending, 1)
	looked, release := make(chan bool), make(chan struct{})
	var held sync.WaitGroup
	defer func() { close(release); held.Wait() }()
	for range most {
		held.Add(1)
		go func() {
			runtime.LockOSThread()
			defer runtime.UnlockOSThread()
			large := stackIsLarge()
			looked <- large
			if !large {
				<-release
			}
			held.Done()
			if large {
				watched(f, end)
			}
		}()
		if <-looked {
			return end
		}
	}
	return nil
}

// watched calls f and tells how it ends.
func watched(f func(), end chan<- ending) {
	var o ending
	defer func() {
		if o.panicked = recover(); o.panicked != nil {
			o.stack = debug.Stack()
		}
		end <- o
	}()
	f()
	o.returned = true
}

// stackExtra is what a thread has on its stack before anything is called: the
// memory for thread-local variables, the guard.
const stackExtra = 2 << 20

// stackIsLarge reports whether the thread, which must be locked, has a large stack.
// That of the main thread grows as far as the limit allows, but Go keeps the
// bounds that it finds at the start, and a callback from below them ends the
// process; so it counts as small.
func stackIsLarge() bool {
	if syscall.Gettid() == syscall.Getpid() {
		return false
	}
	self, err := libcSymbol("pthread_self")
	if err != nil {
		return false
	}
	get, err := libcSymbol("pthread_getattr_np")
	if err != nil {
		return false
	}
	size := uintptr(0)
	withAttributes(func(attributes uintptr) {
		if int32(callInts(get, callInts(self), attributes)) == 0 {
			size = stackSize(attributes)
		}
	})
	return size >= LargeStack+stackExtra/2
}

// addressSpace reports whether there is room for some large stacks: Go ends the
// program if a thread cannot be made.
func addressSpace() bool {
	const some = 4
	reserved, err := syscall.Mmap(-1, 0, some*LargeStack, syscall.PROT_READ|syscall.PROT_WRITE, syscall.MAP_PRIVATE|syscall.MAP_ANON|syscall.MAP_NORESERVE)
	if err != nil {
		return false
	}
	return syscall.Munmap(reserved) == nil
}

// setThreadStack sets the size of the stacks of new threads, and tells whether the
// C library does so; restore takes it back.
func setThreadStack(size uintptr) (restore func(), ok bool) {
	get, err := libcSymbol("pthread_getattr_default_np")
	if err != nil {
		return nil, false
	}
	set, err := libcSymbol("pthread_setattr_default_np")
	if err != nil {
		return nil, false
	}
	resize, err := libcSymbol("pthread_attr_setstacksize")
	if err != nil {
		return nil, false
	}
	change := func(size uintptr) (old uintptr) {
		withAttributes(func(attributes uintptr) {
			if int32(callInts(get, attributes)) == 0 {
				old = stackSize(attributes)
			}
			if old > 0 && int32(callInts(resize, attributes, size)) == 0 {
				callInts(set, attributes)
			}
		})
		return old
	}
	old := change(size)
	restore = func() { change(old) }
	if old == 0 {
		return nil, false
	}
	withAttributes(func(attributes uintptr) { // some C libraries have an upper bound
		ok = int32(callInts(get, attributes)) == 0 && stackSize(attributes) >= size
	})
	if !ok {
		restore()
	}
	return restore, ok
}

// withAttributes calls f with room for a pthread_attr_t, which f fills.
func withAttributes(f func(attributes uintptr)) {
	const room = 256
	p := calloc(room)
	if p == nil {
		return
	}
	defer cfree(p)
	f(uintptr(p))
	if destroy, err := libcSymbol("pthread_attr_destroy"); err == nil {
		callInts(destroy, uintptr(p))
	}
}

// stackSize gives that of a pthread_attr_t.
func stackSize(attributes uintptr) uintptr {
	size := calloc(unsafe.Sizeof(uintptr(0)))
	get, err := libcSymbol("pthread_attr_getstacksize")
	if size == nil || err != nil {
		return 0
	}
	defer cfree(size)
	callInts(get, attributes, uintptr(size))
	return *(*uintptr)(size)
}
