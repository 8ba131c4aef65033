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

// profileRate is how many bytes are allocated for each one that the profile of
// allocations takes note of: enough of them in a short run.
const profileRate = 16 << 10

// profile measures f: where the processor's time goes, and what it allocates. When it
// returns, also with an error of f, the profiles are in the folder dir, which is made if
// necessary; go tool pprof reads them. dir "" only calls f.
func profile(dir string, f func() error) (err error) {
	if dir == "" {
		return f()
	}
	if err := os.MkdirAll(dir, 0o777); err != nil {
		return fmt.Errorf("--debug profile: %w; name a folder that can be made", err)
	}
	// By its absolute path: an FMU may change the working directory meanwhile.
	if dir, err = filepath.Abs(dir); err != nil {
		return fmt.Errorf("--debug profile: %w", err)
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
		err = errors.Join(err, &runError{fmt.Errorf("--debug profile: %w; the results are whole", perr)})
	}
	return err
}

func writeHeapProfile(path string) error {
	f, err := os.Create(path)
	if err != nil {
		return err
	}
	runtime.GC() // the profile is as of the last collection
	return errors.Join(pprof.Lookup("allocs").WriteTo(f, 0), f.Close())
}
