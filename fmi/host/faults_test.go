package host_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"net"
	"os"
	"path/filepath"
	"runtime"
	"runtime/pprof"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/macrostep/macrostep/fmi"
	"github.com/macrostep/macrostep/fmi/archive"
	"github.com/macrostep/macrostep/fmi/diag"
	"github.com/macrostep/macrostep/fmi/host"
	"github.com/macrostep/macrostep/fmi/internal/capi"
	"github.com/macrostep/macrostep/fmi/internal/remote"
	"github.com/macrostep/macrostep/fmi/worker"
	"github.com/macrostep/macrostep/fmus"
)

// misbehaving builds an FMU that fails as the start values of its parameters say.
func misbehaving(t testing.TB, dir, as, name string, starts map[string]string) *fmi.FMU {
	t.Helper()
	path := filepath.Join(dir, as+".fmu")
	if _, err := os.Stat(path); err != nil {
		path, err = fmus.BuildMisbehaving(dir, as, name, starts)
		must(t, err)
	}
	return opened(t, path)
}

// stateful has a state that can be serialised, stateless none.
func stateful(t testing.TB) *fmi.FMU { return misbehaving(t, work, "stateful", "misbehave", nil) }
func stateless(t testing.TB) *fmi.FMU {
	return misbehaving(t, work, "stateless", "misbehave_plain", nil)
}

// eventually waits until a condition is true.
func eventually(t testing.TB, what string, is func() bool) {
	t.Helper()
	for end := time.Now().Add(time.Minute); !is(); time.Sleep(5 * time.Millisecond) {
		if time.Now().After(end) {
			_ = pprof.Lookup("goroutine").WriteTo(os.Stderr, 1)
			t.Fatal("this never comes: " + what)
		}
	}
}

// settled checks that the goroutines, processes and temporary files of a test are gone at its end, after what is closed later.
func settled(t *testing.T) (temp string) {
	t.Helper()
	before := runtime.NumGoroutine() + 1 // package process has one from its first child on
	temp = t.TempDir()
	t.Cleanup(func() {
		if left, err := os.ReadDir(temp); err != nil || len(left) > 0 {
			t.Errorf("left in the temporary folder: %v, %v", left, err)
		}
		eventually(t, "the end of all goroutines", func() bool { return runtime.NumGoroutine() <= before })
		if n := children(t); n != "" {
			t.Errorf("processes left: %s", n)
		}
	})
	return temp
}

// children lists the processes whose parent is this one.
func children(t testing.TB) string {
	t.Helper()
	paths, err := filepath.Glob("/proc/self/task/*/children")
	must(t, err)
	var out []string
	for _, p := range paths {
		text, err := os.ReadFile(p)
		if err == nil && len(bytes.TrimSpace(text)) > 0 {
			out = append(out, string(text))
		}
	}
	return strings.Join(out, " ")
}

func (s *served) ticket(t testing.TB) string {
	t.Helper()
	paths, err := filepath.Glob(filepath.Join(s.dir, "127*.json"))
	must(t, err)
	return paths[0]
}

// A network that is cut at any place of a message, delays or damages it, a hundred times, changes no output of FMUs that serialise
// their states.
func TestNetworkCut(t *testing.T) {
	temp := settled(t)
	faults := []func(p *proxy){
		func(*proxy) {},
		func(p *proxy) { p.set(toHost, cutAfter(0)) },
		func(p *proxy) { p.set(toHost, cutAfter(30)) },
		func(p *proxy) { p.set(fromHost, cutAfter(0)) },
		func(p *proxy) { p.set(fromHost, cutAfter(30)) },
		func(p *proxy) { p.cut() },
		func(p *proxy) { p.set(toHost, damage) },
		func(p *proxy) { p.set(fromHost, damage) },
		func(p *proxy) { p.set(toHost, delay); p.set(fromHost, delay) },
		func(p *proxy) { // the answer is lost, and so is the next greeting
			p.set(fromHost, func([]byte) ([]byte, bool) { p.fault[toHost] = cutAfter(10); return nil, true })
		},
		func(p *proxy) { // no connection for some time
			p.down.Store(true)
			p.cut()
			time.AfterFunc(100*time.Millisecond, func() { p.down.Store(false) })
		},
	}
	f := stateful(t)
	s := serve(t, host.ServerOptions{Folders: []string{work}, MaxInstances: 3, Worker: worker.Launcher{TempDir: temp}})
	p := newProxy(t, s.address)
	c := dialed(t, redirect(t, s.ticket(t), p.Addr().String()), host.ClientOptions{})
	var here, there []*fmi.Stepper
	for k := range 3 {
		here = append(here, begun(t, f, fmt.Sprint("c", k), fmi.InstanceOptions{}, 1))
		there = append(there, begun(t, f, fmt.Sprint("c", k), fmi.InstanceOptions{Launcher: c.Launcher(host.Place{Apart: k == 2})}, 1))
		must(t, there[k].Instance().Keep())
	}
	const rounds = 12
	steps := rounds * len(faults)
	got := outputs(t, there, steps, func(step int) {
		for _, s := range there {
			must(t, s.Instance().Keep())
		}
		faults[step%len(faults)](p)
	})
	if want := outputs(t, here, steps, nil); !slices.Equal(got, want) {
		t.Errorf("over the network %v, here %v", got, want)
	}
	if n := len(there[0].Instance().Restarts()); n < rounds*(len(faults)-2)-1 { // the last is after the last step
		t.Errorf("%d restarts", n)
	}
}

// After a loss, all calls since the kept state are repeated, also if they are more than one message has.
func TestManyCallsRepeated(t *testing.T) {
	const steps = 6000
	temp := settled(t)
	f := stateful(t)
	s := serve(t, host.ServerOptions{Folders: []string{work}, Worker: worker.Launcher{TempDir: temp}})
	p := newProxy(t, s.address)
	c := dialed(t, redirect(t, s.ticket(t), p.Addr().String()), host.ClientOptions{})
	here := begun(t, f, "c", fmi.InstanceOptions{}, 1)
	there := begun(t, f, "c", fmi.InstanceOptions{Launcher: c.Launcher(host.Place{})}, 1)
	must(t, there.Instance().Keep())
	got := outputs(t, []*fmi.Stepper{there}, steps, func(step int) {
		if step == steps-2 {
			p.cut()
		}
	})
	if want := outputs(t, []*fmi.Stepper{here}, steps, nil); !slices.Equal(got, want) {
		t.Errorf("over the network %v, here %v", got, want)
	}
	if n := len(there.Instance().Restarts()); n != 1 {
		t.Errorf("%d restarts", n)
	}
}

// A cut before the end of the initialisation loses nothing, nor one before the first kept state if the FMU has states.
func TestCutAtBegin(t *testing.T) {
	temp := settled(t)
	s := serve(t, host.ServerOptions{Folders: []string{work}, Worker: worker.Launcher{TempDir: temp}})
	for _, f := range []*fmi.FMU{stateful(t), stateless(t)} {
		able := f.Description.CoSimulation.CanSerializeFMUState
		want := outputs(t, []*fmi.Stepper{begun(t, f, "c", fmi.InstanceOptions{}, 1)}, 3, nil)
		for _, way := range []int{toHost, fromHost} {
			cuts := 0
			for n := 0; ; n++ { // the nth data
				p := newProxy(t, s.address)
				left := n
				var fault func(data []byte) ([]byte, bool)
				fault = func(data []byte) ([]byte, bool) {
					if left--; left < 0 {
						cuts++
						return nil, true
					}
					p.fault[way] = fault
					return data, false
				}
				p.set(way, fault)
				c := dialed(t, redirect(t, s.ticket(t), p.Addr().String()), host.ClientOptions{})
				stepper := begun(t, f, "c", fmi.InstanceOptions{Launcher: c.Launcher(host.Place{})}, 1)
				if !able {
					p.set(way, nil)
				}
				if got := outputs(t, []*fmi.Stepper{stepper}, 3, nil); !slices.Equal(got, want) {
					t.Errorf("%s, cut at %d: %v, want %v", f.Path, n, got, want)
				}
				p.set(way, nil)
				must(t, stepper.Instance().Free())
				must(t, c.Close())
				if cuts <= n { // it came to an end without a cut
					break
				}
			}
			if least := map[bool]int{false: 6, true: 9}[able]; cuts < least {
				t.Errorf("%s: %d cuts", f.Path, cuts)
			}
		}
	}
}

// A host that does not see the end of a connection gives the room of its instances to those that replace them.
func TestHalfOpen(t *testing.T) {
	temp := settled(t)
	f := stateful(t)
	s := serve(t, host.ServerOptions{Folders: []string{work}, MaxInstances: 1, Worker: worker.Launcher{TempDir: temp}})
	p := newProxy(t, s.address)
	t.Cleanup(func() { p.half.Store(false); p.cut() })
	p.half.Store(true)
	c := dialed(t, redirect(t, s.ticket(t), p.Addr().String()), host.ClientOptions{})
	there := []*fmi.Stepper{begun(t, f, "c", fmi.InstanceOptions{Launcher: c.Launcher(host.Place{})}, 1)}
	got := outputs(t, there, 5, func(int) { p.cut() })
	if want := outputs(t, []*fmi.Stepper{begun(t, f, "c", fmi.InstanceOptions{}, 1)}, 5, nil); !slices.Equal(got, want) {
		t.Errorf("over the network %v, here %v", got, want)
	}
	if n := len(there[0].Instance().Restarts()); n != 4 {
		t.Errorf("%d restarts", n)
	}
}

// A network that loses everything without an end of connections is given up, and another connection is made.
func TestNetworkSilent(t *testing.T) {
	t.Parallel()
	f := stateful(t)
	s := serve(t, host.ServerOptions{Folders: []string{work}})
	p := newProxy(t, s.address)
	c := dialed(t, redirect(t, s.ticket(t), p.Addr().String()), host.ClientOptions{Timeout: 2 * time.Second})
	there := []*fmi.Stepper{begun(t, f, "c", fmi.InstanceOptions{Launcher: c.Launcher(host.Place{})}, 1)}
	must(t, there[0].Instance().Keep())
	got := outputs(t, there, 3, func(step int) {
		if step == 0 {
			p.silence(true)
			time.AfterFunc(2500*time.Millisecond, func() { p.silence(false) })
		}
	})
	if want := outputs(t, []*fmi.Stepper{begun(t, f, "c", fmi.InstanceOptions{}, 1)}, 3, nil); !slices.Equal(got, want) {
		t.Errorf("over the network %v, here %v", got, want)
	}
}

// An interrupt ends the wait for a host that says nothing, and attempts to reach one. A host that answers goes on.
func TestInterrupt(t *testing.T) {
	t.Parallel()
	f := stateful(t)
	s := serve(t, host.ServerOptions{Folders: []string{work}})
	p := newProxy(t, s.address)
	ctx, interrupt := context.WithCancelCause(t.Context())
	c := dialed(t, redirect(t, s.ticket(t), p.Addr().String()), host.ClientOptions{Timeout: time.Hour})
	stepper := begun(t, f, "c", fmi.InstanceOptions{Launcher: c.Launcher(host.Place{}), Context: ctx}, 1)
	must(t, stepper.Instance().Keep())
	interrupt(errors.New("interrupted by the test"))
	outputs(t, []*fmi.Stepper{stepper}, 3, nil)
	p.silence(true)
	if _, err := stepper.Step(0.3, 0.1, true); err == nil || !strings.Contains(err.Error(), "interrupted by the test: it has said nothing for 2s") {
		t.Error(err)
	}
	_, err := f.Instantiate("d", fmi.InstanceOptions{Launcher: c.Launcher(host.Place{}), Context: ctx})
	if err == nil || !strings.Contains(err.Error(), "interrupted by the test") {
		t.Error(err)
	}
	l, err := net.Listen("tcp", "127.0.0.1:0")
	must(t, err)
	must(t, l.Close())
	ctx, interrupt = context.WithCancelCause(t.Context())
	c = dialed(t, redirect(t, s.ticket(t), l.Addr().String()), host.ClientOptions{Timeout: time.Hour})
	time.AfterFunc(50*time.Millisecond, func() { interrupt(errors.New("interrupted by the test")) })
	if _, _, _, err := c.Status(ctx); err == nil || !strings.Contains(err.Error(), "interrupted by the test") {
		t.Error(err)
	}
}

// Close ends what waits for the host, also an FMU that is being sent.
func TestCloseEnds(t *testing.T) {
	temp := settled(t)
	s := serve(t, host.ServerOptions{Accept: true, Worker: worker.Launcher{TempDir: temp}})
	folder := filepath.Join(t.TempDir(), "large")
	must(t, os.MkdirAll(filepath.Join(folder, "resources"), 0o700))
	must(t, archive.Unpack(stateless(t).Path, folder, &diag.List{}, archive.Limits{}))
	large := make([]byte, 64<<20)
	_, _ = rand.NewChaCha8([32]byte{}).Read(large) // never fails
	must(t, os.WriteFile(filepath.Join(folder, "resources", "large"), large, 0o600))
	p := newProxy(t, s.address)
	c := dialed(t, redirect(t, s.ticket(t), p.Addr().String()), host.ClientOptions{Timeout: time.Hour})
	var stuck func(data []byte) ([]byte, bool)
	many, arrived := 0, make(chan bool)
	stuck = func(data []byte) ([]byte, bool) {
		if many += len(data); many < 1<<20 {
			p.fault[toHost] = stuck
			return data, false
		}
		close(arrived)
		p.mute = true
		return nil, false
	}
	p.set(toHost, stuck)
	failed := make(chan error)
	f := opened(t, folder)
	go func() {
		_, err := f.Instantiate("c", fmi.InstanceOptions{Launcher: c.Launcher(host.Place{})})
		failed <- err
	}()
	<-arrived
	must(t, c.Close())
	if err := <-failed; err == nil || !strings.Contains(err.Error(), "the client is closed") {
		t.Error(err)
	}
	p.cut()
	eventually(t, "the end of the partial FMU", func() bool {
		left, err := filepath.Glob(filepath.Join(temp, "*", "*.fmu"))
		return err == nil && len(left) == 0
	})
}

// A host that is killed and started again at the same address continues FMUs that serialise their states. Others end with an
// error that names host, FMU and time, and what can be done.
func TestHostKilled(t *testing.T) {
	for _, f := range []*fmi.FMU{stateful(t), stateless(t)} {
		able := f.Description.CoSimulation.CanSerializeFMUState
		cmd, ticket := apart(t, work, "127.0.0.1:0")
		c := dialed(t, ticket, host.ClientOptions{})
		address := c.Launcher(host.Place{}).Host()
		var here, there []*fmi.Stepper
		for k := range 2 {
			name := fmt.Sprint("c", k)
			here = append(here, begun(t, f, name, fmi.InstanceOptions{}, 1))
			there = append(there, begun(t, f, name, fmi.InstanceOptions{Launcher: c.Launcher(host.Place{})}, 1))
		}
		kill := func() {
			must(t, cmd.Process.Kill())
			_ = cmd.Wait() // killed
			cmd, _ = apart(t, work, address)
		}
		if !able {
			outputs(t, there, 1, nil)
			kill()
			_, err := there[1].Step(0.1, 0.1, true)
			var p *fmi.ProcessError
			if !errors.As(err, &p) || p.Host != address || p.Time != 0.1 || p.FMU != "stateless.fmu" || p.Func == "" || p.Remedy == "" {
				t.Errorf("%#v", err)
			}
			if text := err.Error(); !strings.Contains(text, "on host "+address+" ended in ") || !strings.Contains(text, "at t = 0.1 s") ||
				!strings.Contains(text, "cannot serialise") {
				t.Error(text)
			}
			continue
		}
		keep := func() {
			for _, s := range there {
				must(t, s.Instance().Keep())
			}
		}
		keep()
		got := outputs(t, there, 12, func(step int) {
			switch step {
			case 2, 8:
				kill()
			case 5:
				time.Sleep(300 * time.Millisecond) // so that Keep takes another state
			}
			keep()
		})
		if want := outputs(t, here, 12, nil); !slices.Equal(got, want) {
			t.Errorf("with restarts %v, without %v", got, want)
		}
		for _, s := range there {
			if r := s.Instance().Restarts(); len(r) != 2 {
				t.Errorf("restarts: %+v", r)
			}
			must(t, s.Instance().Free()) // while the host is there
		}
	}
}

// A host that never comes back, freezes, or is another program ends the run, after the time limit.
func TestHostGone(t *testing.T) {
	t.Parallel()
	f := stateful(t)
	for name, leave := range map[string]func(p *os.Process) error{"killed": (*os.Process).Kill, "frozen": freeze} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			cmd, ticket := apart(t, work, "127.0.0.1:0")
			c := dialed(t, ticket, host.ClientOptions{Timeout: time.Second})
			s := begun(t, f, "c", fmi.InstanceOptions{Launcher: c.Launcher(host.Place{})}, 1)
			must(t, s.Instance().Keep())
			must(t, leave(cmd.Process))
			_, err := s.Step(0, 0.1, true)
			var p *fmi.ProcessError
			if !errors.As(err, &p) || !strings.Contains(err.Error(), "could not be reached within 1s") {
				t.Errorf("%v", err)
			}
		})
	}
	t.Run("silent", func(t *testing.T) {
		t.Parallel()
		l, err := net.Listen("tcp", "127.0.0.1:0")
		must(t, err)
		t.Cleanup(func() { _ = l.Close() })
		s := serve(t, host.ServerOptions{Folders: []string{work}})
		c := dialed(t, redirect(t, s.ticket(t), l.Addr().String()), host.ClientOptions{Timeout: time.Second})
		if _, _, _, err := c.Status(t.Context()); err == nil || !strings.Contains(err.Error(), "host "+l.Addr().String()+" could not be reached within 1s") {
			t.Errorf("%v", err)
		}
	})
}

// Who may not use a host, or finds another program, gets the reason and what to do.
func TestRefused(t *testing.T) {
	temp := settled(t)
	f := stateless(t)
	folder := t.TempDir()
	offered := misbehaving(t, folder, "offered", "misbehave_plain", nil)
	_ = misbehaving(t, folder, "stateless", "misbehave_plain", map[string]string{"x0": "3"}) // another with the same name
	s := serve(t, host.ServerOptions{Name: "lab", Folders: []string{folder}, MaxInstances: 1, Worker: worker.Launcher{TempDir: temp}})
	refused := func(c *host.Client, f *fmi.FMU, want string) {
		t.Helper()
		_, err := f.Instantiate("c", fmi.InstanceOptions{Launcher: c.Launcher(host.Place{})})
		var no *host.RefusedError
		if !errors.As(err, &no) || no.Remedy == "" || !strings.Contains(err.Error(), want) {
			t.Errorf("%v, want %q", err, want)
		}
	}
	c := s.client(t, host.ClientOptions{})
	refused(c, f, "offers another stateless.fmu: sha256:")
	refused(c, stateful(t), "does not offer stateful.fmu")
	refused(dialed(t, changed(t, s.ticket(t), func(k *host.Ticket) { k.Token = "wrong" }), host.ClientOptions{}), offered, "the token is not that of the host; copy the file")
	begun(t, offered, "c", fmi.InstanceOptions{Launcher: c.Launcher(host.Place{})}, 1)
	refused(c, offered, "host lab is at its limit of 1 instances; wait")
	other := serve(t, host.ServerOptions{Folders: []string{folder}})
	refused(dialed(t, redirect(t, s.ticket(t), other.address), host.ClientOptions{}), offered, "its certificate is not that of the ticket")
	l, err := net.Listen("tcp", "127.0.0.1:0")
	must(t, err)
	t.Cleanup(func() { _ = l.Close() })
	go func() {
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			_, _ = c.Write([]byte("HTTP/1.1 400 Bad Request\r\nConnection: close\r\n\r\n"))
			_ = c.Close()
		}
	}()
	refused(dialed(t, redirect(t, s.ticket(t), l.Addr().String()), host.ClientOptions{}), offered, "is not a host of macrostep")
	if n := s.Status().Instances; n != 1 {
		t.Errorf("%d instances", n)
	}
}

// A host that accepts any FMU gets archives and folders, and uses what it has got once.
func TestSent(t *testing.T) {
	temp := settled(t)
	s := serve(t, host.ServerOptions{Accept: true, Worker: worker.Launcher{TempDir: temp}})
	packed := stateless(t)
	folder := filepath.Join(t.TempDir(), "folder")
	must(t, os.Mkdir(folder, 0o700))
	must(t, archive.Unpack(packed.Path, folder, &diag.List{}, archive.Limits{}))
	must(t, os.MkdirAll(filepath.Join(folder, "resources"), 0o700))
	large := make([]byte, 3<<20) // of several pieces
	for i := range large {
		large[i] = byte(i * i >> 7)
	}
	must(t, os.WriteFile(filepath.Join(folder, "resources", "large"), large, 0o600))
	want := outputs(t, []*fmi.Stepper{begun(t, packed, "c", fmi.InstanceOptions{}, 1)}, 5, nil)
	for _, f := range []*fmi.FMU{packed, opened(t, folder)} {
		for range 2 {
			c := s.client(t, host.ClientOptions{})
			got := outputs(t, []*fmi.Stepper{begun(t, f, "c", fmi.InstanceOptions{Launcher: c.Launcher(host.Place{})}, 1)}, 5, nil)
			if !slices.Equal(got, want) {
				t.Errorf("%s: sent %v, here %v", f.Path, got, want)
			}
		}
	}
}

// An unpacked FMU in a folder of the host that has changed is not used under its old hash.
func TestFolderChanged(t *testing.T) {
	work := t.TempDir()
	folder := filepath.Join(work, "offered")
	must(t, os.Mkdir(folder, 0o700))
	must(t, archive.Unpack(stateless(t).Path, folder, &diag.List{}, archive.Limits{}))
	copied := filepath.Join(t.TempDir(), "offered")
	must(t, os.CopyFS(copied, os.DirFS(folder)))
	s := serve(t, host.ServerOptions{Folders: []string{work}})
	launch := func() error {
		c := s.client(t, host.ClientOptions{})
		in, err := opened(t, copied).Instantiate("c", fmi.InstanceOptions{Launcher: c.Launcher(host.Place{})})
		if err == nil {
			err = in.Free()
		}
		return errors.Join(err, c.Close())
	}
	must(t, launch())
	must(t, os.MkdirAll(filepath.Join(folder, "resources"), 0o700))
	added := filepath.Join(folder, "resources", "added")
	must(t, os.WriteFile(added, []byte("x"), 0o600))
	if err := launch(); err == nil || !strings.Contains(err.Error(), "offers another offered") {
		t.Error(err)
	}
	must(t, os.RemoveAll(filepath.Join(folder, "resources")))
	must(t, launch())
}

// A host that cannot be reached is waited for once, not for each instance.
func TestUnreachableOnce(t *testing.T) {
	t.Parallel()
	f := stateless(t)
	s := serve(t, host.ServerOptions{Folders: []string{work}})
	p := newProxy(t, s.address)
	p.down.Store(true)
	c := dialed(t, redirect(t, s.ticket(t), p.Addr().String()), host.ClientOptions{Timeout: 3 * time.Second})
	var first error
	for k := range 3 {
		_, err := f.Instantiate("c", fmi.InstanceOptions{Launcher: c.Launcher(host.Place{})})
		if err == nil || !strings.Contains(err.Error(), "could not be reached within 3s") {
			t.Error(err)
		}
		if k == 0 {
			first = err
			p.down.Store(false) // the second attempt would reach it
		} else if err != nil && err.Error() != first.Error() {
			t.Errorf("%v, then %v", first, err)
		}
	}
}

// Connections that say nothing, or nonsense, keep nobody out.
func TestStrangers(t *testing.T) {
	settled(t)
	s := serve(t, host.ServerOptions{Folders: []string{work}})
	var idle []net.Conn
	for i := range 300 {
		c, err := net.Dial("tcp", s.address)
		must(t, err)
		if i%10 == 9 {
			_, _ = c.Write(bytes.Repeat([]byte{0xff, byte(i)}, 100)) // the host may have closed it
		}
		idle = append(idle, c)
	}
	f := stateless(t)
	c := s.client(t, host.ClientOptions{})
	outputs(t, []*fmi.Stepper{begun(t, f, "c", fmi.InstanceOptions{Launcher: c.Launcher(host.Place{})}, 1)}, 5, nil)
	for _, c := range idle {
		_ = c.Close()
	}
}

// An FMU that ends its process, or hangs, ends the instances with which it shares the process, with an error that names it. The
// host and other instances go on.
func TestFMUFaults(t *testing.T) {
	temp := settled(t)
	folder := t.TempDir()
	healthy := misbehaving(t, folder, "healthy", "misbehave_plain", nil)
	s := serve(t, host.ServerOptions{Folders: []string{folder}, Worker: worker.Launcher{TempDir: temp, Timeout: 400 * time.Millisecond}})
	for _, fault := range []struct{ name, want string }{
		{"Segfault", "killed by signal SIGSEGV"}, {"Exit7", "exit"}, {"KillItself", "SIGKILL"}, {"EndlessSleep", "did not return within"},
	} {
		f := misbehaving(t, folder, "bad"+fault.name, "misbehave_plain", map[string]string{"fault": fault.name, "at": "0.05"})
		for _, alone := range []bool{false, true} {
			want := fault.want
			if fault.name == "EndlessSleep" {
				want += map[bool]string{true: " 400ms", false: " 1.2s"}[alone] // of all that share the process
			}
			c := s.client(t, host.ClientOptions{})
			var all []*fmi.Stepper
			for _, name := range []string{"good", "bad", "fine"} {
				of := healthy
				if name == "bad" {
					of = f
				}
				all = append(all, begun(t, of, name, fmi.InstanceOptions{Launcher: c.Launcher(host.Place{Apart: alone})}, 1))
			}
			outputs(t, all, 1, nil)
			batch, err := fmi.NewBatch(all)
			must(t, err)
			errs := make([]error, len(all))
			for ran := 0; ran < len(all); {
				ran, _, err = batch.Step(ran, 0.1, 0.1, true)
				errs[ran-1] = err
			}
			for k, s := range all {
				err := errs[k]
				bad := s.Instance().Name() == "bad"
				var p *fmi.ProcessError
				switch {
				case alone && !bad:
					if err != nil {
						t.Errorf("%s, %s: %v", fault.name, s.Instance().Name(), err)
					}
				case !errors.As(err, &p) || !strings.Contains(err.Error(), want) || p.Host == "" || p.Time != 0.1 ||
					!bad && !strings.Contains(err.Error(), "was ended by bad") || bad && !strings.Contains(err.Error(), "on purpose"):
					t.Errorf("%s, %s, alone: %v: %v", fault.name, s.Instance().Name(), alone, err)
				}
			}
			must(t, c.Close())
		}
	}
	eventually(t, "the end of all instances", func() bool { return s.Status().Instances == 0 })
}

// A client cannot have a library loaded that is not that of its FMU.
func TestOtherLibrary(t *testing.T) {
	f := stateless(t)
	s := serve(t, host.ServerOptions{Folders: []string{work}})
	c := s.client(t, host.ClientOptions{})
	evil, err := filepath.Abs(os.Args[0])
	must(t, err)
	launch := fmi.Launch{Instance: "c", FMU: f.Path, Hash: f.Hash, Log: func([]byte) {}, Output: func(string, bool) {}}
	load := func(request []byte) error {
		l, err := c.Launcher(host.Place{}).Launch(launch)
		must(t, err)
		must(t, l.Post(request, remote.MaxTexts))
		_, err = l.Await()
		return errors.Join(err, l.Close())
	}
	if err := load(remote.AppendPlace(nil, capi.File{Path: evil}, "")); err == nil {
		t.Error("another place is taken")
	}
	for _, path := range []string{"", evil} {
		var k remote.Client
		k.Launch = func(bool) (remote.Link, error) {
			return c.Launcher(host.Place{}).Launch(launch)
		}
		k.Ended = func(error) (int, bool, bool) { return 0, true, false }
		k.Lost = func(_ string, cause error) error { return cause }
		if _, err := k.Open("x.fmu", capi.File{Path: path}); (err == nil) != (path == "") {
			t.Errorf("path %q: %v", path, err)
		}
		must(t, k.Close())
	}
}

// Log messages and output of an FMU on a host are those of one here.
func TestMessages(t *testing.T) {
	folder := t.TempDir()
	f := misbehaving(t, folder, "storm", "misbehave_plain", map[string]string{"fault": "LogStorm", "messages": "1500"})
	s := serve(t, host.ServerOptions{Folders: []string{folder}})
	c := s.client(t, host.ClientOptions{})
	flood := misbehaving(t, folder, "flood", "misbehave_plain", map[string]string{"fault": "LogStorm", "messages": "2500"})
	said := func(f *fmi.FMU, debug bool, l fmi.Launcher) (out []string) {
		in, err := f.Instantiate("c", fmi.InstanceOptions{Launcher: l, LoggingOn: debug, Log: func(m fmi.LogMessage) {
			out = append(out, m.Instance+" "+m.Status.String()+" "+m.Category+" "+m.Text)
		}})
		must(t, err)
		must(t, errors.Join(in.SetupExperiment(fmi.Experiment{}), in.EnterInitializationMode(), in.ExitInitializationMode()))
		_, err = in.DoStep(0, 0.1, false)
		must(t, errors.Join(err, in.Terminate(), in.Free()))
		return out
	}
	for _, test := range []struct {
		fmu   *fmi.FMU
		debug bool
		least int
	}{{f, false, 1500}, {flood, true, 2500}} { // with debug logging none is dropped
		got, want := said(test.fmu, test.debug, c.Launcher(host.Place{})), said(test.fmu, test.debug, &worker.Launcher{})
		if !slices.Equal(got, want) || len(want) < test.least {
			t.Errorf("on a host %d messages, here %d, want at least %d", len(got), len(want), test.least)
		}
	}
	some := said(flood, false, &worker.Launcher{}) // all, if the machine is slow
	dropped := strings.Contains(some[len(some)-1], "of 2500 log messages of the FMU were dropped")
	if len(some) < 2500 && (len(some) < 2001 || !dropped) {
		t.Errorf("%d messages, and the last is %q", len(some), some[len(some)-1])
	}
}

// The instances of a client that is gone end after a while, also if one of them does not return, and those of a closed client at
// once. A host that is closed leaves no process, also if an FMU does not return.
func TestSessionsEnd(t *testing.T) {
	temp := settled(t)
	folder, marker := t.TempDir(), filepath.Join(t.TempDir(), "marker")
	f := misbehaving(t, folder, "hangs", "misbehave_plain", map[string]string{"fault": "EndlessSleep", "at": "0.05", "marker": marker})
	s, err := host.NewServer(host.ServerOptions{Folders: []string{folder}, Worker: worker.Launcher{TempDir: temp}})
	must(t, err)
	d, end := listen(t, s)
	p := newProxy(t, d.address)
	ticket := redirect(t, d.ticket(t), p.Addr().String())
	begin := func() (*host.Client, []*fmi.Stepper) {
		c := dialed(t, ticket, host.ClientOptions{Timeout: time.Second})
		all := []*fmi.Stepper{begun(t, f, "c", fmi.InstanceOptions{Launcher: c.Launcher(host.Place{})}, 1),
			begun(t, f, "d", fmi.InstanceOptions{Launcher: c.Launcher(host.Place{Apart: true})}, 1)}
		outputs(t, all, 1, nil)
		return c, all
	}
	// hang makes a step that does not return.
	hung := make(chan error, 1)
	hang := func(s *fmi.Stepper, nth int64) {
		go func() {
			_, err := s.Step(0.1, 0.1, true)
			hung <- err
		}()
		eventually(t, "the step", func() bool {
			info, err := os.Stat(marker)
			return err == nil && info.Size() == nth
		})
	}
	none := func() bool { return s.Status().Instances == 0 }

	c, _ := begin()
	must(t, c.Close())
	eventually(t, "the end of the instances of a closed client", none)

	_, _ = begin()
	_, busy := begin()
	hang(busy[0], 1)
	p.down.Store(true)
	p.cut()
	eventually(t, "the end of the instances of a lost client", none)
	if err := <-hung; err == nil {
		t.Error("no error")
	}

	p.down.Store(false)
	_, busy = begin()
	hang(busy[0], 2)
	end()
	if n := s.Status().Instances; n != 0 {
		t.Errorf("%d instances of a closed server", n)
	}
	if err := <-hung; err == nil {
		t.Error("no error")
	}
}

// dropped is the number of objects that the race detector adds to a step.
var dropped = 0.0

// A step allocates no memory except, for all instances together, a reader of crypto/tls.
func TestStepAllocates(t *testing.T) {
	f := stateful(t)
	_, ticket := apart(t, work, "127.0.0.1:0")
	c := dialed(t, ticket, host.ClientOptions{})
	var all []*fmi.Stepper
	for k := range 3 {
		all = append(all, begun(t, f, fmt.Sprint("c", k), fmi.InstanceOptions{Launcher: c.Launcher(host.Place{Apart: k == 2})}, 1))
	}
	batch, err := fmi.NewBatch(all)
	must(t, err)
	at := 0.0
	step := func() {
		_, _, err := batch.Step(0, at, 1e-3, true)
		must(t, err)
		at += 1e-3
	}
	for range 3000 { // until the calls since the initialisation are too many to be stored
		step()
	}
	if n := testing.AllocsPerRun(500, step); n > 1+dropped {
		t.Errorf("%v allocations a step", n)
	}
}
