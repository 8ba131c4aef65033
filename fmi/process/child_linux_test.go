package process_test

import (
	"bufio"
	"fmt"
	"os"
	"os/exec"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/macrostep/macrostep/fmi/process"
)

func init() {
	for name, f := range map[string]func() error{
		// It starts a child process and prints its number.
		"family": func() error {
			cmd := exec.Command("sleep", "1000")
			if err := cmd.Start(); err != nil {
				return err
			}
			_ = answer(cmd.Process.Pid)
			return wait()
		},
		"stack": func() error {
			var limit unix.Rlimit
			if err := unix.Getrlimit(unix.RLIMIT_STACK, &limit); err != nil {
				return err
			}
			return answer(limit.Cur, process.ThreadStack())
		},
		"stdin": func() error {
			life, err := process.TakeStdin()
			if err != nil {
				return err
			}
			n, err := os.Stdin.Read(make([]byte, 1))
			fmt.Println("ready")
			line, _ := bufio.NewReader(life).ReadString('\n')
			fmt.Printf("%d %v %q\n", n, err, line)
			return nil
		},
		"memory": func() error {
			err := process.LimitMemory(64 << 20)
			if err == nil {
				_, err = syscall.Mmap(-1, 0, 256<<20, syscall.PROT_READ|syscall.PROT_WRITE, syscall.MAP_PRIVATE|syscall.MAP_ANON)
			}
			return answer(err)
		},
		// Foreign code closes all files.
		"closed": func() error {
			p, err := openPage()
			if err != nil {
				return err
			}
			if err := unix.CloseRange(3, 1<<16, 0); err != nil {
				return err
			}
			copy(p.Region("after", 10_000_000), "after")
			fmt.Println("ready")
			return nil
		},
		"files": func() error {
			p, err := openPage()
			if err != nil {
				return err
			}
			out, err := exec.Command("ls", fmt.Sprint("/proc/self/fd/", p.File().Fd())).CombinedOutput()
			return answer(err, string(out))
		},
		// No more than the list and three regions fits.
		"limited": func() error {
			limit := unix.Rlimit{Cur: 3 << 20, Max: 3 << 20}
			if err := unix.Setrlimit(unix.RLIMIT_FSIZE, &limit); err != nil {
				return err
			}
			p, err := process.NewPage()
			if err != nil {
				return err
			}
			info, err := p.File().Stat()
			if err != nil {
				return err
			}
			return answer(info.Size())
		},
	} {
		roles[name] = f
	}
}

// answer prints that the process is ready, and a line of values.
func answer(values ...any) error {
	fmt.Println("ready")
	fmt.Println(values...)
	return nil
}

// ended starts this program in a role and returns how it ends, and the line that some roles
// print after they are ready.
func ended(t *testing.T, name string, page *process.Page, o process.Options) (line, reason string) {
	t.Helper()
	c, stdin, lines := start(t, name, page, o)
	fmt.Fprintln(stdin, "hello")
	if slices.Contains([]string{"stack", "stdin", "memory", "files", "limited"}, name) {
		line, _ = lines.ReadString('\n')
	}
	<-c.Done()
	reason, _ = process.Reason(c.State())
	return strings.TrimSpace(line), reason
}

// alive reports whether a process runs; a zombie does not.
func alive(pid string) bool {
	stat, err := os.ReadFile("/proc/" + pid + "/stat")
	if err != nil {
		return false
	}
	_, rest, _ := strings.Cut(string(stat), ") ")
	return !strings.HasPrefix(rest, "Z")
}

// gone waits for the end of a process.
func gone(t *testing.T, pid string) {
	t.Helper()
	for range 1000 {
		if !alive(pid) {
			return
		}
		time.Sleep(10 * time.Millisecond)
	}
	t.Errorf("process %s goes on", pid)
}

// The child processes of a process with a group end with it, whether it is killed or ends.
func TestGroup(t *testing.T) {
	for _, kill := range []bool{true, false} {
		c, stdin, lines := start(t, "family", nil, process.Options{Group: true})
		line, _ := lines.ReadString('\n')
		child := strings.TrimSpace(line)
		if !alive(child) {
			t.Fatalf("%q does not run", child)
		}
		if kill {
			c.Kill()
		} else {
			_ = stdin.Close()
		}
		<-c.Done()
		gone(t, child)
	}
}

// A signal reaches the whole group.
func TestSignal(t *testing.T) {
	c, _, lines := start(t, "family", nil, process.Options{Group: true})
	line, _ := lines.ReadString('\n')
	must(t, c.Signal(syscall.SIGTERM))
	<-c.Done()
	gone(t, strings.TrimSpace(line))
	if text, outside := process.Reason(c.State()); text != "killed by signal SIGTERM (terminated), from outside or raised by the FMU" || !outside {
		t.Errorf("%s, %v", text, outside)
	}
	if process.Peak(c.State()) < 1<<20 {
		t.Errorf("it used %d bytes", process.Peak(c.State()))
	}
}

func TestStack(t *testing.T) {
	var before, after unix.Rlimit
	must(t, unix.Getrlimit(unix.RLIMIT_STACK, &before))
	if before.Max < 64<<20 {
		t.Skip("the limit on stacks cannot be raised here (ulimit -H -s)")
	}
	if line, reason := ended(t, "stack", nil, process.Options{Stack: 64 << 20}); line != "67108864 67108864" && before.Cur <= 64<<20 || reason != "it exited with code 0" {
		t.Errorf("%q, %s", line, reason)
	}
	if err := unix.Getrlimit(unix.RLIMIT_STACK, &after); err != nil || after != before {
		t.Errorf("the limit here is %v and was %v", after, before)
	}
	if line, _ := ended(t, "stack", nil, process.Options{}); !strings.HasPrefix(line, fmt.Sprint(before.Cur)) {
		t.Errorf("not asked for: %s", line)
	}
}

func TestTakeStdin(t *testing.T) {
	if line, _ := ended(t, "stdin", nil, process.Options{}); line != `0 EOF "hello\n"` {
		t.Error(line)
	}
}

func TestLimitMemory(t *testing.T) {
	if line, _ := ended(t, "memory", nil, process.Options{}); line != "cannot allocate memory" {
		t.Error(line)
	}
	if err := process.LimitMemory(0); err != nil {
		t.Error(err)
	}
}

// A child that has lost all of its files can still share more memory. Programs that it starts do not get the page.
// Under a limit on the size of files a page has less room. A child cannot shorten the page.
func TestPageFiles(t *testing.T) {
	page := newPage(t)
	if _, reason := ended(t, "closed", page, process.Options{}); reason != "it exited with code 0" {
		t.Error(reason)
	}
	if r := page.Find("after"); len(r) != 10_000_000 || string(r[:5]) != "after" {
		t.Errorf("%d bytes are found", len(r))
	}
	if line, _ := ended(t, "files", newPage(t), process.Options{}); !strings.HasPrefix(line, "exit status 2") {
		t.Error(line)
	}
	if line, reason := ended(t, "limited", nil, process.Options{}); line != fmt.Sprint(2<<20) {
		t.Errorf("%q, %s", line, reason)
	}
	if err := page.File().Truncate(0); err == nil {
		t.Error("the page was shortened")
	}
}
