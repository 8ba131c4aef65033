package host_test

import (
	"context"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/macrostep/macrostep/fmi"
	"github.com/macrostep/macrostep/fmi/description"
	"github.com/macrostep/macrostep/fmi/host"
	"github.com/macrostep/macrostep/fmi/worker"
	"github.com/macrostep/macrostep/fmus"
	"github.com/macrostep/macrostep/test/cc"
)

var work string

func TestMain(m *testing.M) {
	cc.Cache()
	worker.Main()
	if dir := os.Getenv("HOST_TEST"); dir != "" {
		serveAlone(dir)
	}
	os.Exit(setUp(m))
}

func setUp(m *testing.M) int {
	var err error
	if work, err = os.MkdirTemp("", "host-test-"); err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	defer os.RemoveAll(work)
	return m.Run()
}

func must(tb testing.TB, err error) {
	tb.Helper()
	if err != nil {
		tb.Fatal(err)
	}
}

// built opens one of our FMUs.
func built(t testing.TB, name string) *fmi.FMU {
	t.Helper()
	path := filepath.Join(work, name+".fmu")
	if _, err := os.Stat(path); err != nil {
		path, err = fmus.Build(work, name)
		must(t, err)
	}
	return opened(t, path)
}

func opened(t testing.TB, path string) *fmi.FMU {
	t.Helper()
	f, _, err := fmi.Open(path, fmi.OpenOptions{TempDir: t.TempDir()})
	must(t, err)
	t.Cleanup(func() {
		if err := f.Close(); err != nil {
			t.Error(err)
		}
	})
	return f
}

// served is a server in this process.
type served struct {
	*host.Server
	address, dir string
}

// serve starts a server.
func serve(t testing.TB, o host.ServerOptions) *served {
	t.Helper()
	s, err := host.NewServer(o)
	must(t, err)
	out, end := listen(t, s)
	t.Cleanup(end)
	return out
}

// listen opens a port for a server until the function that it returns is called.
func listen(t testing.TB, s *host.Server) (_ *served, end func()) {
	t.Helper()
	dir := t.TempDir()
	l, certificate, token, _, err := host.Listen("127.0.0.1:0", dir)
	must(t, err)
	ctx, stop := context.WithCancel(context.Background())
	var running sync.WaitGroup
	running.Go(func() {
		if err := s.Serve(ctx, l, certificate, token); err != nil {
			t.Error(err)
		}
	})
	return &served{s, l.Addr().String(), dir}, func() {
		stop()
		running.Wait()
		if err := s.Close(); err != nil {
			t.Error(err)
		}
	}
}

// client makes a client of a server.
func (s *served) client(t testing.TB, o host.ClientOptions) *host.Client {
	t.Helper()
	c, err := host.NewClient(s.address, s.dir, o)
	must(t, err)
	t.Cleanup(func() { _ = c.Close() })
	return c
}

// begun returns a stepper of an initialised instance with n inputs and outputs.
func begun(tb testing.TB, f *fmi.FMU, name string, o fmi.InstanceOptions, n int) *fmi.Stepper {
	tb.Helper()
	in, err := f.Instantiate(name, o)
	must(tb, err)
	tb.Cleanup(func() {
		if err := in.Free(); err != nil {
			tb.Log(err) // the host may be gone
		}
	})
	must(tb, in.SetupExperiment(fmi.Experiment{}))
	must(tb, in.EnterInitializationMode())
	must(tb, in.ExitInitializationMode())
	s, err := in.NewStepper(fmi.StepPlan{RealIn: first(f, description.Input, n), RealOut: first(f, description.Output, n)})
	must(tb, err)
	return s
}

// first returns the first input or output n times.
func first(f *fmi.FMU, c description.Causality, n int) []description.ValueReference {
	i := slices.IndexFunc(f.Description.Variables, func(v description.ScalarVariable) bool { return v.Causality == c })
	return slices.Repeat([]description.ValueReference{f.Description.Variables[i].ValueReference}, n)
}

// outputs steps instances and returns their outputs. between is called after each step.
func outputs(t testing.TB, steppers []*fmi.Stepper, steps int, between func(step int)) []float64 {
	t.Helper()
	batch, err := fmi.NewBatch(steppers)
	must(t, err)
	var out []float64
	for i := range steps {
		for k, s := range steppers {
			s.RealIn[0] = float64(i*k + 1)
		}
		_, _, err := batch.Step(0, float64(i)*0.1, 0.1, true)
		must(t, err)
		for _, s := range steppers {
			out = append(out, s.RealOut[0])
		}
		if between != nil {
			between(i)
		}
	}
	return out
}

func TestSteps(t *testing.T) {
	f := built(t, "mass_force")
	s := serve(t, host.ServerOptions{Folders: []string{work}})
	c := s.client(t, host.ClientOptions{})
	var here, there []*fmi.Stepper
	for k := range 3 {
		here = append(here, begun(t, f, fmt.Sprint("c", k), fmi.InstanceOptions{}, 1))
		there = append(there, begun(t, f, fmt.Sprint("c", k), fmi.InstanceOptions{Launcher: c.Launcher(host.Place{Apart: k == 2})}, 1))
	}
	if got, want := outputs(t, there, 20, nil), outputs(t, here, 20, nil); !slices.Equal(got, want) {
		t.Errorf("on a host %v, here %v", got, want)
	}
	about, offers, trip, err := c.Status(t.Context())
	must(t, err)
	if about.Instances != 3 || !slices.Contains(offers, host.Offer{Name: "mass_force.fmu", Model: "mass_force", Hash: f.Hash}) || trip <= 0 {
		t.Errorf("%+v %+v %v", about, offers, trip)
	}
}

// serveAlone is the main function of a server in a process of its own.
func serveAlone(dir string) {
	s, err := host.NewServer(host.ServerOptions{Folders: []string{dir}, Accept: true})
	if err == nil {
		var l net.Listener
		var address = os.Getenv("HOST_TEST_ADDRESS")
		l, certificate, token, ticket, failed := host.Listen(address, filepath.Join(dir, "secrets"))
		if failed != nil {
			fmt.Fprintln(os.Stderr, failed)
			os.Exit(1)
		}
		fmt.Println(ticket)
		err = s.Serve(context.Background(), l, certificate, token)
	}
	fmt.Fprintln(os.Stderr, err)
	os.Exit(1)
}

// apart starts a server in a process of its own and returns its process and its ticket.
func apart(t testing.TB, dir, address string) (*exec.Cmd, string) {
	t.Helper()
	cmd := exec.Command(os.Args[0])
	cmd.Env = append(os.Environ(), "HOST_TEST="+dir, "HOST_TEST_ADDRESS="+address)
	cmd.Stderr = os.Stderr
	out, err := cmd.StdoutPipe()
	must(t, err)
	must(t, cmd.Start())
	t.Cleanup(func() { _ = cmd.Process.Kill(); _ = cmd.Wait() })
	buf := make([]byte, 4096)
	n, err := out.Read(buf)
	must(t, err)
	return cmd, strings.TrimSpace(string(buf[:n]))
}

// A URL is refused without its user, password and query, whether it is valid or not. Addresses and tickets are none.
func TestURLRefused(t *testing.T) {
	for where, shown := range map[string]string{
		"nats://broker:4222":                        "nats://broker:4222",
		"tls://me:secret@broker:4222":               "tls://broker:4222",
		"nats://secret@broker/x":                    "nats://broker/x",
		"nats://me:secret@a:1,nats://me:secret@b:2": "nats://a:1,nats://b:2",
		"nats://me:secret@[::1":                     "nats://[::1",
		"nats://me:secr%zzsecret@broker":            "nats://broker",
		"nats://me:secret/secret@broker":            "nats://broker",
		"nats://me:secret@broker?token=secret":      "nats://broker",
		"nats://broker#secret":                      "nats://broker",
		"nats://me:secret?secret@broker":            "nats://…",
		"nats://broker?token=secret@secret":         "nats://…",
		"://me:secret@":                             "://",
		"me:secret@broker:4222":                     "broker:4222",
	} {
		_, err := host.NewClient(where, t.TempDir(), host.ClientOptions{})
		if err == nil || !strings.HasPrefix(err.Error(), shown+": a host of FMUs has no URL; start macrostep host --listen") || strings.Contains(err.Error(), "secret") {
			t.Errorf("%s: %v", where, err)
		}
	}
	for _, where := range []string{"lab7:7447", "[::1]:7447", "lab7_7447.json", `C:\\hosts\lab7.json`, "me@lab7.json", "/tmp//hosts:/me@lab7.json"} {
		if err := host.CheckAddress(where); err != nil {
			t.Error(err)
		}
	}
}
