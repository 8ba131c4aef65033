package supervise

import (
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"github.com/macrostep/macrostep/fmi/process"
)

// AdoptOrphans makes this process the parent of processes whose own parents end, so that
// what an FMU has left running is found when its engine has died. It is for a program
// that starts other processes by package process only.
func AdoptOrphans() {
	if unix.Prctl(unix.PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0) == nil {
		adopting = true
	}
}

var adopting bool

// endOrphans ends them. Other engines and what they have started stay.
func endOrphans() {
	const rounds = 100 // some may begin others meanwhile
	for range rounds {
		// Looking into /proc takes a hundred times as long as asking whether there is any.
		if !adopting || unix.Waitid(unix.P_ALL, 0, nil, unix.WEXITED|unix.WNOHANG|unix.WNOWAIT, nil) == unix.ECHILD {
			return
		}
		children := ownChildren()
		if len(children) == 0 {
			return
		}
		found := false
		process.Others(children, func(pid int) {
			found = true
			_ = syscall.Kill(pid, syscall.SIGKILL)
			_, _ = syscall.Wait4(pid, nil, 0, nil)
		})
		if !found {
			return
		}
	}
}

// ownChildren returns the children of this process.
func ownChildren() []int {
	files, _ := filepath.Glob(fmt.Sprintf("/proc/%d/task/*/children", os.Getpid()))
	var out []int
	for _, file := range files {
		text, _ := os.ReadFile(file)
		for _, word := range strings.Fields(string(text)) {
			if pid, err := strconv.Atoi(word); err == nil {
				out = append(out, pid)
			}
		}
	}
	return out
}

// followStops stops the engine while its supervisor is stopped (SIGSTOP, which nobody can
// catch); the supervisor has it continue.
func followStops() {
	const every = 200 * time.Millisecond
	parent, own := os.Getppid(), os.Getpid()
	if syscall.Getpgrp() != own {
		return
	}
	for range time.Tick(every) {
		text, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", parent))
		_, state, found := strings.Cut(string(text), ") ")
		if err == nil && found && strings.HasPrefix(state, "T") {
			_ = syscall.Kill(-own, syscall.SIGSTOP)
		}
	}
}
