//go:build unix

package record

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"
	"time"
	"unsafe"

	"github.com/macrostep/macrostep/master"
)

// mapped is a Memory of files in a folder.
type mapped string

func (m mapped) Region(name string, size int) []byte {
	m.Drop(name)
	f, err := os.OpenFile(filepath.Join(string(m), name), os.O_RDWR|os.O_CREATE, 0o600)
	if err == nil {
		err = f.Truncate(int64(size))
	}
	if err != nil {
		panic(err)
	}
	defer f.Close()
	return mapFile(f, size)
}

func (m mapped) Drop(name string) { _ = os.Remove(filepath.Join(string(m), name)) }

// find maps a region that another process has made.
func (m mapped) find(name string) []byte {
	f, err := os.OpenFile(filepath.Join(string(m), name), os.O_RDWR, 0)
	if err != nil {
		return nil
	}
	defer f.Close()
	info, err := f.Stat()
	if err != nil || info.Size() == 0 {
		return nil
	}
	return mapFile(f, int(info.Size()))
}

func mapFile(f *os.File, size int) []byte {
	b, err := syscall.Mmap(int(f.Fd()), 0, size, syscall.PROT_READ|syscall.PROT_WRITE, syscall.MAP_SHARED)
	if err != nil {
		panic(err)
	}
	return b
}

// words returns a region as counters.
func words(b []byte) *[512]atomic.Uint64 { return (*[512]atomic.Uint64)(unsafe.Pointer(&b[0])) }

// killed is what the process is told that is to be killed.
type killed struct {
	Path, Attempts, Memory string
	Format                 Format
	Flush, Checkpoint      int // after how many rows
}

// killedPoint makes the values of row i.
func killedPoint(p *master.Point, i int) {
	vary(p, i)
	p.DiscreteOut[0].String[0] = fmt.Sprintf("row %d,%s", i, strings.Repeat("é", i*i%40))
	if i%5000 == 4999 {
		p.DiscreteOut[0].String[0] += strings.Repeat("long", 1<<18)
	}
}

// TestKilledChild is the process that is killed: it records as fast as it can, and counts.
func TestKilledChild(t *testing.T) {
	var k killed
	if json.Unmarshal([]byte(os.Getenv("RECORD_TEST_KILLED")), &k) != nil {
		t.Skip("another test starts this one as a process of its own")
	}
	memory := mapped(k.Memory)
	count := words(memory.Region("count", 4096))
	sys := testSystem(t)
	c := NewTable(k.Path, Options{Format: k.Format, Memory: memory})
	a := NewAttempts(k.Attempts, memory)
	must(t, errors.Join(c.Begin(sys, nil), a.Begin(nil, nil)))
	fmt.Println("ready")
	p := testPoint(sys)
	for i := 0; ; i++ {
		killedPoint(p, i)
		must(t, c.Record(p))
		count[0].Store(uint64(i + 1))
		must(t, a.RecordAttempt(float64(i), 1, master.Trial{}, true, nil))
		count[1].Store(uint64(i + 1))
		if i%k.Flush == 0 {
			must(t, errors.Join(c.Flush(), a.Flush()))
		}
		if i%k.Checkpoint == k.Checkpoint-1 {
			must(t, checkpoint(c))
		}
	}
}

// A process that is killed while it records leaves every row: none is lost, doubled or cut.
func TestSalvageKilled(t *testing.T) {
	random := rand.New(rand.NewPCG(5, 6))
	const most = 25_000 // rows before the kill
	want := make(map[int]string)
	times := 12
	if testing.Short() {
		times = 4
	}
	for n := range times * len(formats) {
		dir := t.TempDir()
		k := killed{
			Path: filepath.Join(dir, "r"), Attempts: filepath.Join(dir, "a.csv"), Memory: filepath.Join(dir, "memory"),
			Format: formats[n%len(formats)], Flush: 1 + random.IntN(3000), Checkpoint: 1 + random.IntN(20_000),
		}
		must(t, os.Mkdir(k.Memory, 0o700))
		after := uint64(random.IntN(most))
		if n < 2*len(formats) {
			after = uint64(n)
		}
		killOne(t, k, after)

		memory := mapped(k.Memory)
		count := words(memory.find("count"))
		rows, attempts := int(count[0].Load()), int(count[1].Load())
		s, err := Salvage(memory.find)
		if err != nil || s.Path != k.Path || s.Attempts != k.Attempts {
			t.Fatalf("%+v: %+v, %v", k, s, err)
		}
		if s.Rows != rows && s.Rows != rows+1 {
			t.Fatalf("%+v: %d rows, and the process has recorded %d", k, s.Rows, rows)
		}
		got := tableRows(t, k.Format, k.Path)
		p := testPoint(testSystem(t))
		for i := range s.Rows {
			if want[i] == "" {
				killedPoint(p, i)
				want[i] = csvRow(p)
			}
			rest, ok := strings.CutPrefix(got, want[i])
			if !ok {
				t.Fatalf("%+v: row %d of %d is %.200s", k, i, s.Rows, got)
			}
			got = rest
		}
		if got != "" {
			t.Fatalf("%+v: after the last row there is %.200s", k, got)
		}
		if n := checkAttempts(t, k.Attempts); n != attempts && n != attempts+1 {
			t.Fatalf("%+v: %d attempts, and the process has recorded %d", k, n, attempts)
		}
	}
}

// killOne starts a process and kills it when it has recorded some rows, or a little later.
func killOne(t *testing.T, k killed, after uint64) {
	t.Helper()
	about, err := json.Marshal(k)
	must(t, err)
	cmd := exec.Command(os.Args[0], "-test.run", "^TestKilledChild$")
	cmd.Env = append(os.Environ(), "RECORD_TEST_KILLED="+string(about))
	out, err := cmd.StdoutPipe()
	if err == nil {
		err = cmd.Start()
	}
	must(t, err)
	if line, err := bufio.NewReader(out).ReadString('\n'); line != "ready\n" {
		t.Fatal(line, err, cmd.Wait())
	}
	count := words(mapped(k.Memory).find("count"))
	ended := make(chan error, 1)
	go func() { ended <- cmd.Wait() }()
	for count[0].Load() < after {
		select {
		case err := <-ended:
			t.Fatal("the process has ended by itself: ", err)
		default:
			time.Sleep(50 * time.Microsecond)
		}
	}
	must(t, cmd.Process.Kill())
	<-ended
}

// csvRow returns a row of testSystem.
func csvRow(p *master.Point) string {
	number := func(b bool) int {
		if b {
			return 1
		}
		return 0
	}
	b := appendReal(nil, p.T)
	b = appendReal(append(b, ','), p.Y[0])
	out, watch := p.DiscreteOut[0], p.Watch[2]
	b = fmt.Appendf(b, ",%d,%d,%d,", out.Integer[0], number(out.Boolean[0]), out.Integer[1])
	b = fmt.Appendf(appendField(b, out.String[0]), ",%d,", p.DiscreteIn[0].Integer[1])
	b = appendReal(append(appendReal(b, p.Y[2]), ','), p.U[2])
	b = appendReal(append(appendReal(append(b, ','), p.U[4]), ','), watch.Real[0])
	b = fmt.Appendf(b, ",%d,", number(watch.Boolean[0]))
	b = appendReal(append(appendField(b, watch.String[0]), ','), watch.Real[1])
	return string(append(b, '\n'))
}

// checkAttempts returns the number of attempts in a file, all of which must be right.
func checkAttempts(t *testing.T, path string) (rows int) {
	t.Helper()
	data := mustRead(t, path)
	lines := strings.SplitAfter(string(data), "\n")
	for i, line := range lines[1 : len(lines)-1] {
		if line != fmt.Sprintf("%v,1,0,0,0,0,1\n", float64(i)) {
			t.Fatalf("attempt %d is %q", i, line)
		}
	}
	if lines[0] != attemptsText.header || lines[len(lines)-1] != "" {
		t.Fatalf("the table of attempts begins %q and ends %q", lines[0], lines[len(lines)-1])
	}
	return len(lines) - 2
}

// Into a pipe, what is left is written behind what the process has written.
func TestSalvagePipe(t *testing.T) {
	sys := testSystem(t)
	for _, f := range formats {
		path := filepath.Join(t.TempDir(), "pipe")
		must(t, syscall.Mkfifo(path, 0o600))
		pipe, err := os.OpenFile(path, os.O_RDWR, 0)
		must(t, err)
		defer pipe.Close()
		memory := kept{}
		c := begun(t, sys, path, Options{Format: f, Memory: memory})
		p := testPoint(sys)
		want := ""
		for i := range 20 {
			vary(p, i)
			want += csvRow(p)
			err := c.Record(p)
			if i == 9 {
				err = errors.Join(err, checkpoint(c))
			}
			must(t, err)
		}
		must(t, c.file.Close())
		if s, err := Salvage(memory.find); err != nil || s.Rows != 20 || s.Added != 10 {
			t.Fatalf("%v: %+v, %v", f, s, err)
		}
		buf := make([]byte, 60_000) // less than a pipe holds
		n, err := pipe.Read(buf)
		must(t, err)
		got := ""
		if f == CSV {
			_, got, _ = strings.Cut(string(buf[:n]), "\n")
		} else if got, _, err = arrowRows(t, bytes.NewReader(stream(f, buf[:n]))); err != nil && f == ArrowStream {
			t.Error(err)
		}
		if got != want {
			t.Errorf("%v: %s", f, got)
		}
	}
}
