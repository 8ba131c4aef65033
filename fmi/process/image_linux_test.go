package process_test

import (
	"errors"
	"os"
	"os/exec"
	"strings"
	"syscall"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/macrostep/macrostep/fmi/process"
)

func init() {
	roles["image"] = func() error {
		name, path, err := process.Image()
		return answer(name, path, err)
	}
	// It hides /proc, which needs a name space of mounts, and starts this program again as "image".
	roles["hidden"] = func() error {
		path, err := os.Executable()
		if err := errors.Join(err, os.Setenv(role, "image"), unix.Mount("none", "/proc", "tmpfs", 0, "")); err != nil {
			return err
		}
		return syscall.Exec(path, os.Args[:1], os.Environ())
	}
}

// Without /proc the error of Image names it, and the remedy.
func TestImageWithoutProc(t *testing.T) {
	path, err := os.Executable()
	must(t, err)
	cmd := exec.Command(path)
	cmd.Env = append(os.Environ(), role+"=hidden")
	cmd.SysProcAttr = &syscall.SysProcAttr{
		Cloneflags:  syscall.CLONE_NEWUSER | syscall.CLONE_NEWNS,
		UidMappings: []syscall.SysProcIDMap{{HostID: os.Geteuid(), Size: 1}},
		GidMappings: []syscall.SysProcIDMap{{HostID: os.Getegid(), Size: 1}},
	}
	out, err := cmd.CombinedOutput()
	if errors.Is(err, os.ErrPermission) || strings.Contains(string(out), "not permitted") || strings.Contains(string(out), "permission denied") {
		t.Skipf("only root may make name spaces here; run the tests as root: %v, %s", err, out)
	}
	for _, part := range []string{"cannot start the program again", "/proc/self/exe", "needs /proc (mount -t proc proc /proc)"} {
		if err != nil || !strings.Contains(string(out), part) {
			t.Errorf("%v, %q, not %q", err, out, part)
		}
	}
}
