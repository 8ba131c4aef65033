package cluster

import (
	"context"
	"errors"
	"net"
	"os"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/nats-io/nats-server/v2/server"
	"github.com/nats-io/nats.go"
	"github.com/nats-io/nkeys"

	"github.com/macrostep/macrostep/fmi"
	"github.com/macrostep/macrostep/fmi/description"
	"github.com/macrostep/macrostep/fmi/host"
	fmuworker "github.com/macrostep/macrostep/fmi/worker"
	"github.com/macrostep/macrostep/fmus"
	"github.com/macrostep/macrostep/test/cc"
)

func TestMain(m *testing.M) {
	cc.Cache()
	fmuworker.Main()
	os.Exit(m.Run())
}

// broker starts a server without streams.
func broker(t *testing.T, o server.Options) *server.Server {
	t.Helper()
	o.Host, o.NoSigs, o.NoLog = "127.0.0.1", true, true
	if o.Port == 0 {
		o.Port = server.RANDOM_PORT
	}
	s, err := server.NewServer(&o)
	if err != nil {
		t.Fatal(err)
	}
	s.Start()
	t.Cleanup(func() { s.Shutdown(); s.WaitForShutdown() })
	if !s.ReadyForConnections(time.Minute) {
		t.Fatal("the server does not start")
	}
	return s
}

// offer starts a host until the function that it returns is called, or the test ends.
func offer(t *testing.T, url string, o host.ServerOptions) (_ *host.Server, end func()) {
	t.Helper()
	s, err := host.NewServer(o)
	if err != nil {
		t.Fatal(err)
	}
	l, err := Connect(url, Credentials{})
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	var running sync.WaitGroup
	running.Go(func() {
		if err := l.ServeHost(ctx, s); err != nil {
			t.Error(err)
		}
	})
	end = sync.OnceFunc(func() {
		cancel()
		running.Wait()
		if err := errors.Join(l.Close(), s.Close()); err != nil {
			t.Error(err)
		}
	})
	t.Cleanup(end)
	subjects := 2 + len(s.Offers())
	if o.Accept {
		subjects++
	}
	for l.conn.NumSubscriptions() < subjects {
		time.Sleep(time.Millisecond)
	}
	if err := l.conn.Flush(); err != nil {
		t.Fatal(err)
	}
	return s, end
}

func user(t *testing.T, url string, o host.ClientOptions) *host.Client {
	c := host.NewClient(&HostDialer{URL: url}, o)
	t.Cleanup(func() { _ = c.Close() }) // some tests have done so
	return c
}

// folderOf builds the FMU misbehave, which serialises its state, and opens it.
func folderOf(t *testing.T) (dir string, f *fmi.FMU) {
	t.Helper()
	dir = t.TempDir()
	path, err := fmus.BuildMisbehaving(dir, "stateful", "misbehave", nil)
	if err != nil {
		t.Fatal(err)
	}
	if f, _, err = fmi.Open(path, fmi.OpenOptions{TempDir: t.TempDir()}); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = f.Close() })
	return dir, f
}

// use steps an instance and returns its outputs. between is called after each step.
func use(t *testing.T, f *fmi.FMU, l fmi.Launcher, between func(step int)) (out []float64, restarts int) {
	t.Helper()
	in, err := f.Instantiate("c", fmi.InstanceOptions{Launcher: l})
	if err == nil {
		err = errors.Join(in.SetupExperiment(fmi.Experiment{}), in.EnterInitializationMode(), in.ExitInitializationMode())
	}
	if err != nil {
		t.Fatal(err)
	}
	s, err := in.NewStepper(fmi.StepPlan{RealIn: []description.ValueReference{0}, RealOut: []description.ValueReference{1}})
	if err == nil && l != nil {
		err = in.Keep()
	}
	for i := 0; i < 6 && err == nil; i++ {
		s.RealIn[0] = float64(i)
		if _, err = s.Step(float64(i)*0.1, 0.1, true); err == nil {
			out = append(out, s.RealOut[0])
			between(i)
		}
	}
	if err != nil {
		t.Error(err)
	}
	restarts = len(in.Restarts())
	if err := in.Free(); err != nil {
		t.Error(err)
	}
	return out, restarts
}

func nothing(int) {}

// A run finds the hosts with its FMU: another one if the first is at its limit, or is gone. A host that is lost is replaced by
// another one, with equal outputs.
func TestHostsByFMU(t *testing.T) {
	t.Parallel()
	dir, f := folderOf(t)
	want, _ := use(t, f, nil, nothing)
	b := broker(t, server.Options{})
	c := user(t, b.ClientURL(), host.ClientOptions{Timeout: time.Second})
	fails := func(c *host.Client, text string) {
		t.Helper()
		_, err := c.Launcher(host.Place{}).Launch(fmi.Launch{Instance: "c", FMU: f.Path, Hash: f.Hash})
		if err == nil || !strings.Contains(err.Error(), text) {
			t.Errorf("%v, want %q", err, text)
		}
	}
	fails(c, "no host at "+b.ClientURL()+" offers this FMU")
	first, end := offer(t, b.ClientURL(), host.ServerOptions{Folders: []string{dir}, MaxInstances: 1})
	got, _ := use(t, f, c.Launcher(host.Place{}), func(step int) {
		if step != 2 {
			return
		}
		other := user(t, b.ClientURL(), host.ClientOptions{})
		for _, k := range []*host.Client{c, other} {
			fails(k, "are at the limits of their instances")
		}
		second, _ := offer(t, b.ClientURL(), host.ServerOptions{Folders: []string{dir}, MaxInstances: 2})
		for _, k := range []*host.Client{c, other} {
			out, _ := use(t, f, k.Launcher(host.Place{}), func(int) {
				if a, b := first.Status().Instances, second.Status().Instances; a != 1 || b != 1 {
					t.Errorf("%d and %d instances", a, b)
				}
			})
			if !slices.Equal(out, want) {
				t.Errorf("on another host %v, here %v", out, want)
			}
		}
	})
	if !slices.Equal(got, want) {
		t.Errorf("on a host %v, here %v", got, want)
	}
	end()
	_, end = offer(t, b.ClientURL(), host.ServerOptions{Folders: []string{dir}, MaxInstances: 1})
	offer(t, b.ClientURL(), host.ServerOptions{Folders: []string{dir}})
	got, restarts := use(t, f, c.Launcher(host.Place{}), func(step int) {
		if step == 2 {
			end()
		}
	})
	if !slices.Equal(got, want) || restarts > 1 {
		t.Errorf("%d restarts, %v, without %v", restarts, got, want)
	}
}

// A server that is gone for a while, like the network to it, changes nothing.
func TestHostsServerGone(t *testing.T) {
	t.Parallel()
	dir, f := folderOf(t)
	want, _ := use(t, f, nil, nothing)
	b := broker(t, server.Options{})
	offer(t, b.ClientURL(), host.ServerOptions{Folders: []string{dir}})
	c := user(t, b.ClientURL(), host.ClientOptions{})
	got, restarts := use(t, f, c.Launcher(host.Place{}), func(step int) {
		if step == 2 {
			port := b.Addr().(*net.TCPAddr).Port
			b.Shutdown()
			b.WaitForShutdown()
			broker(t, server.Options{Port: port})
		}
	})
	if !slices.Equal(got, want) || restarts != 0 {
		t.Errorf("%d restarts, %v, without %v", restarts, got, want)
	}
}

// Messages that are longer than those of the server travel in pieces, here those with an FMU.
func TestHostsPieces(t *testing.T) {
	t.Parallel()
	_, f := folderOf(t)
	want, _ := use(t, f, nil, nothing)
	b := broker(t, server.Options{MaxPayload: 4096})
	offer(t, b.ClientURL(), host.ServerOptions{Accept: true, Worker: fmuworker.Launcher{TempDir: t.TempDir()}})
	got, _ := use(t, f, user(t, b.ClientURL(), host.ClientOptions{}).Launcher(host.Place{}), nothing)
	if !slices.Equal(got, want) {
		t.Errorf("sent %v, here %v", got, want)
	}
}

// A server with authentication lets nobody in who is not known to it.
func TestHostsRefused(t *testing.T) {
	t.Parallel()
	k, err := nkeys.CreateUser()
	if err != nil {
		t.Fatal(err)
	}
	public, err := k.PublicKey()
	if err != nil {
		t.Fatal(err)
	}
	b := broker(t, server.Options{Nkeys: []*server.NkeyUser{{Nkey: public}}})
	c := user(t, b.ClientURL(), host.ClientOptions{})
	if _, _, _, err := c.Status(); !errors.Is(err, nats.ErrAuthorization) || !strings.Contains(err.Error(), "give --credentials") {
		t.Error(err)
	}
}

// The instances of a client end when it is closed.
func TestHostsClientCloses(t *testing.T) {
	t.Parallel()
	dir, f := folderOf(t)
	b := broker(t, server.Options{})
	s, _ := offer(t, b.ClientURL(), host.ServerOptions{Folders: []string{dir}})
	c := user(t, b.ClientURL(), host.ClientOptions{})
	if _, err := c.Launcher(host.Place{}).Launch(fmi.Launch{Instance: "c", FMU: f.Path, Hash: f.Hash}); err != nil {
		t.Fatal(err)
	}
	if err := c.Close(); err != nil {
		t.Fatal(err)
	}
	for end := time.Now().Add(time.Minute); s.Status().Instances > 0; time.Sleep(5 * time.Millisecond) {
		if time.Now().After(end) {
			t.Fatal("the instance of a closed client stays")
		}
	}
}
