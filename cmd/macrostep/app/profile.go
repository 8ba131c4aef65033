package app

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"runtime/pprof"
)

// Files in the folder of --debug profile=DIR.
const (
	cpuProfile  = "cpu.pprof"
	heapProfile = "allocs.pprof"
)

// profileRate is the number of allocated bytes for each sample of the profile, small enough for short runs.
const profileRate = 16 << 10

// profile calls f and writes profiles of its processor time and allocations into the folder dir, which it
// makes if necessary, also if f fails. go tool pprof reads them. With dir "" it only calls f.
func profile(dir string, f func() error) (err error) {
	if dir == "" {
		return f()
	}
	if err := os.MkdirAll(dir, 0o777); err != nil {
		return fmt.Errorf("--debug profile: %w; name a folder that can be created", err)
	}
	cpu, err := os.Create(filepath.Join(dir, cpuProfile))
	if err != nil {
		return fmt.Errorf("--debug profile: %w; name a folder that you may write to", err)
	}
	rate := runtime.MemProfileRate
	runtime.MemProfileRate = profileRate
	defer func() { runtime.MemProfileRate = rate }()
	if err := pprof.StartCPUProfile(cpu); err != nil {
		return errors.Join(fmt.Errorf("--debug profile: %w", err), cpu.Close())
	}
	err = f()
	pprof.StopCPUProfile()
	if perr := errors.Join(cpu.Close(), writeHeapProfile(filepath.Join(dir, heapProfile))); perr != nil {
		err = errors.Join(err, &runError{fmt.Errorf("--debug profile: %w; the results are complete", perr)})
	}
	return err
}

func writeHeapProfile(path string) error {
	f, err := os.Create(path)
	if err != nil {
		return err
	}
	runtime.GC() // the profile covers allocations up to the last collection
	return errors.Join(pprof.Lookup("allocs").WriteTo(f, 0), f.Close())
}
