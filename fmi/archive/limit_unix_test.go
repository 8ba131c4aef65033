//go:build unix

package archive

import (
	"os"
	"os/exec"
	"strings"
	"syscall"
	"testing"
)

// If the folder is the cause of an error, the message does not blame the archive.
func TestNoRoom(t *testing.T) {
	if os.Getenv("ARCHIVE_TEST_UNPACK") != "" { // the process with the limit
		must(t, Unpack(os.Getenv("ARCHIVE_TEST_UNPACK"), t.TempDir(), nil, Limits{}))
		return
	}
	name := save(t, pack(t, file("big", strings.Repeat("0123456789abcdef", 64<<10))))
	cmd := exec.Command("sh", "-c", `ulimit -f 16; exec "$0" -test.run "^TestNoRoom$"`, os.Args[0])
	cmd.Env = append(os.Environ(), "ARCHIVE_TEST_UNPACK="+name)
	out, err := cmd.CombinedOutput()
	if err == nil || !strings.Contains(string(out), "ulimit -f") || strings.Contains(string(out), "damaged") || !strings.Contains(string(out), "entry big") {
		t.Errorf("%v: %s", err, out)
	}
	for _, errno := range []syscall.Errno{syscall.ENOSPC, syscall.EDQUOT, syscall.EMFILE, syscall.EROFS, syscall.EACCES} {
		if text := remedy(&os.PathError{Op: "write", Path: "x", Err: errno}); !strings.Contains(text, "may be sound") {
			t.Errorf("%v: %s", errno, text)
		}
	}
}
