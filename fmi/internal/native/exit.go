package native

import (
	"path/filepath"
	"sync"
	"sync/atomic"
	"time"
)

// flushing holds an element while the streams of C are written. The reader of a pipe may be slow.
var flushing = make(chan struct{}, 1)

// stuck means that a flush has lasted longer than flushPatience. Later ones do not wait for it.
var stuck atomic.Bool

const flushPatience = 2 * time.Second

// Flush writes what the streams of C still hold. It goes on in the background if that lasts longer than
// two seconds, and then returns false.
func Flush() bool {
	if stuck.Load() && len(flushing) > 0 {
		return false
	}
	late := time.NewTimer(flushPatience)
	defer late.Stop()
	done := make(chan struct{})
	go func() {
		flushing <- struct{}{}
		flushStreams()
		<-flushing
		close(done)
	}()
	select {
	case <-done:
		return true
	case <-late.C:
		stuck.Store(true)
		return false
	}
}

// Exit ends the process like exit of C: it calls exit handlers and destructors of libraries, and writes
// the streams. If that lasts longer than a time, or the process is not clean, it calls none.
func Exit(code int, clean bool, within time.Duration) {
	Flush()
	if clean {
		time.AfterFunc(within, func() { leave(code) })
		exit(code)
	}
	leave(code)
}

// library is a library that OpenLibrary loads.
type library struct {
	path string
	tag  Tag
	//lint:ignore U1000 it is used on Windows
	handle uintptr
}

// opened are these libraries in the order of loading.
var opened struct {
	sync.Mutex
	list []library
}

func noteOpened(l library) {
	opened.Lock()
	defer opened.Unlock()
	opened.list = append(opened.list, l)
}

// tagOf returns the tag of the call that ends a library: that of the FMU in whose folder it is, 0 for none.
func tagOf(path string) Tag {
	opened.Lock()
	defer opened.Unlock()
	for _, l := range opened.list {
		if filepath.Dir(l.path) == filepath.Dir(path) {
			return l.tag.ending()
		}
	}
	return 0
}
