package cluster

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/nats-io/nats-server/v2/server"
	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"github.com/macrostep/macrostep/master/study"
)

// folder makes the folder of a study of so many variants. Its system is never opened.
func folder(t *testing.T, samples int, more string) *study.Folder {
	t.Helper()
	dir := t.TempDir()
	path := filepath.Join(dir, "plan.yaml")
	plan := fmt.Sprintf("{system: none.ssp, vary: {a.x: 'linear(0, 1)'}, samples: %d, collect: {x: final(a.x)}%s}", samples, more)
	p, err := study.Parse(path, []byte(plan), nil)
	if err != nil {
		t.Fatal(err)
	}
	f, err := study.Create(filepath.Join(dir, "study"), p, []byte(plan), &study.Inspection{})
	if err != nil {
		t.Fatal(err)
	}
	return f
}

// engineFunc is an engine in this process.
type engineFunc func(ctx context.Context, v study.Variant) (study.Row, error)

func (f engineFunc) Run(ctx context.Context, v study.Variant) (study.Row, error) { return f(ctx, v) }
func (f engineFunc) Close() error                                                { return nil }

// double is the row of a run whose result is twice its number.
func double(p *study.Plan, v study.Variant) study.Row {
	r := p.NoRow(v, study.OK, "")
	r.Collected[0] = 2 * float64(v.ID)
	return r
}

// worker makes such runs, after what before does.
func worker(l *Link, c *Coordinator, f *study.Folder, engines int, before func(ctx context.Context, v study.Variant) error) *Worker {
	return &Worker{Link: l, Identity: c.Identity(), Folder: f.Path, Plan: f.Plan, Engines: engines, New: func(int) Engine {
		return engineFunc(func(ctx context.Context, v study.Variant) (study.Row, error) {
			if before != nil {
				if err := before(ctx, v); err != nil {
					return study.Row{}, err
				}
			}
			return double(f.Plan, v), nil
		})
	}}
}

// begin runs a worker until the function that it returns is called, or the test ends.
func begin(t *testing.T, w *Worker) (end func()) {
	t.Helper()
	ctx, cancel := context.WithCancel(context.Background())
	var running sync.WaitGroup
	running.Go(func() {
		if err := w.Run(ctx); err != nil {
			t.Error(err)
		}
	})
	end = func() { cancel(); running.Wait() }
	t.Cleanup(end)
	return end
}

func serve(t *testing.T, f *study.Folder, listen string) *Link {
	t.Helper()
	l, err := Serve(ServerOptions{Store: filepath.Join(f.Path, "queue"), Listen: listen, Ticket: filepath.Join(f.Path, "join.json")})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = l.Close() }) // some tests have done so
	return l
}

func coordinate(t *testing.T, l *Link, f *study.Folder, remote bool) *Coordinator {
	t.Helper()
	c, err := Coordinate(t.Context(), l, f, remote)
	if err != nil {
		t.Fatal(err)
	}
	return c
}

// finish carries out the study and expects every variant once, with its value.
func finish(t *testing.T, f *study.Folder, c *Coordinator) *study.Findings {
	t.Helper()
	found, err := (&study.Study{Plan: f.Plan, Folder: f}).Run(t.Context(), c)
	if err != nil {
		t.Fatal(err)
	}
	if err := errors.Join(c.End(t.Context()), f.Close()); err != nil {
		t.Error(err)
	}
	if len(found.Rows) != f.Plan.Design.Samples {
		t.Errorf("%d rows of %d variants", len(found.Rows), f.Plan.Design.Samples)
	}
	for i, r := range found.Rows {
		if r.ID != i || r.Status == study.OK && r.Collected[0] != 2*float64(i) {
			t.Fatalf("row %d: %+v", i, r)
		}
	}
	return found
}

func TestLocal(t *testing.T) {
	f := folder(t, 300, "")
	l := serve(t, f, "")
	c := coordinate(t, l, f, false)
	begin(t, worker(l, c, f, 2, nil))
	finish(t, f, c)
	if l.server.Addr() != nil {
		t.Errorf("a port is open: %v", l.server.Addr())
	}
	if left, err := l.Studies(t.Context()); err != nil || len(left) > 0 {
		t.Errorf("left on the server: %v, %v", left, err)
	}
}

// Of two workers that made the same run, the first to publish its row counts.
func TestRowOnce(t *testing.T) {
	f := folder(t, 1, "")
	defer f.Close()
	l := serve(t, f, "")
	c := coordinate(t, l, f, false)
	w := &taker{Worker: worker(l, c, f, 1, nil), names: c.names}
	for _, value := range []float64{1, 2} {
		row := f.Plan.NoRow(study.Variant{Values: []string{"0.5"}}, study.OK, "")
		row.Collected[0] = value
		w.publish(t.Context(), &nats.Msg{}, &answer{Row: row})
	}
	rows, err := l.js.Stream(t.Context(), c.names.rows())
	if err != nil || rows.CachedInfo().State.Msgs != 1 {
		t.Fatalf("%d rows, %v", rows.CachedInfo().State.Msgs, err)
	}
	err = c.Run(t.Context(), []study.Variant{{Values: []string{"0.5"}}}, func(r study.Row) error {
		if r.Collected[0] != 1 {
			t.Errorf("the row is %+v", r)
		}
		return nil
	})
	if err = errors.Join(err, c.End(t.Context())); err != nil {
		t.Error(err)
	}
}

// A variant that ends its engine three times has a row that says so; one that does so twice, or whose engine is ended from
// outside, has its values.
func TestDeaths(t *testing.T) {
	f := folder(t, 60, "")
	l := serve(t, f, "")
	c := coordinate(t, l, f, false)
	var mu sync.Mutex
	tries := map[int]int{}
	begin(t, worker(l, c, f, 2, func(_ context.Context, v study.Variant) error {
		mu.Lock()
		defer mu.Unlock()
		tries[v.ID]++
		if v.ID%20 == 7 || v.ID%20 == 9 && tries[v.ID] <= 2 {
			return &Death{Reason: "it is gone"}
		}
		return nil
	}))
	for i, r := range finish(t, f, c).Rows {
		if bad := i%20 == 7; bad != (r.Status == study.Crashed) || bad && (tries[i] != 3 || r.Reason != "it is gone; so did 3 engines in all") {
			t.Errorf("run %d after %d tries: %+v", i, tries[i], r)
		}
	}
}

// Without the file of the study nobody joins. With it, workers join over TLS and leave again, in the middle of their runs,
// and nothing is lost. Files travel once per machine.
func TestJoin(t *testing.T) {
	f := folder(t, 400, ", keep: all")
	l := serve(t, f, "127.0.0.1:0")
	c := coordinate(t, l, f, true)
	ticket := filepath.Join(f.Path, "join.json")
	if info, err := os.Stat(ticket); err != nil || runtime.GOOS != "windows" && info.Mode().Perm() != 0o600 {
		t.Errorf("%v, %v", info.Mode(), err)
	}
	address := "tls://" + l.server.Addr().String()
	other := folder(t, 1, "")
	_ = serve(t, other, "127.0.0.1:0")
	for _, who := range []Credentials{{}, {File: filepath.Join(other.Path, "join.json")}} {
		if _, err := Connect(address, who); err == nil {
			t.Errorf("%+v has joined", who)
		}
	}
	join := func() (*Link, string) {
		joined, err := Connect("", Credentials{File: ticket})
		if err != nil {
			t.Fatal(err)
		}
		dir := t.TempDir()
		if err := Download(t.Context(), joined, c.Identity(), filepath.Join(dir, "cache"), filepath.Join(dir, "study")); err != nil {
			t.Fatal(err)
		}
		copied, err := study.OpenFolder(filepath.Join(dir, "study"), study.ReadOnly)
		if err != nil || copied.Plan.Design.Samples != 400 {
			t.Fatal(err)
		}
		return joined, dir
	}
	var ends []func()
	var made [2]atomic.Int64
	for i := range made {
		joined, dir := join()
		w := worker(joined, c, f, 2, func(ctx context.Context, v study.Variant) error {
			made[i].Add(1)
			pause(ctx, time.Millisecond)
			path := filepath.Join(dir, "study", "runs", fmt.Sprintf("%d.csv", v.ID))
			return errors.Join(os.MkdirAll(filepath.Dir(path), 0o777), os.WriteFile(path, []byte(fmt.Sprint(v.ID)), 0o666))
		})
		w.Folder, w.Upload = filepath.Join(dir, "study"), true
		ends = append(ends, begin(t, w))
	}
	go func() {
		for made[0].Load() < 50 {
			time.Sleep(time.Millisecond)
		}
		ends[0]()
	}()
	finish(t, f, c)
	for id := range 400 {
		if data, err := os.ReadFile(filepath.Join(f.Path, "runs", fmt.Sprintf("%d.csv", id))); err != nil || string(data) != fmt.Sprint(id) {
			t.Fatalf("the table of run %d: %q, %v", id, data, err)
		}
	}
	if made[0].Load() < 50 || made[1].Load() < 50 {
		t.Errorf("runs by worker: %d, %d", made[0].Load(), made[1].Load())
	}
}

// A coordinator that has gone away goes on later: with the rows of its folder, those that workers have published meanwhile,
// and those that are missing.
func TestContinue(t *testing.T) {
	f := folder(t, 200, "")
	l := serve(t, f, "")
	c := coordinate(t, l, f, false)
	end := begin(t, worker(l, c, f, 2, nil))
	enough := errors.New("enough")
	rows := 0
	_, err := (&study.Study{Plan: f.Plan, Folder: f, Events: func(study.Event) { rows++ }}).Run(t.Context(), stopper{c, 50, enough})
	if !errors.Is(err, enough) {
		t.Fatal(err)
	}
	c.Leave()
	before := uint64(0)
	for before < 120 { // what is published without a coordinator
		stream, err := l.js.Stream(t.Context(), c.names.rows())
		if err != nil {
			t.Fatal(err)
		}
		before = stream.CachedInfo().State.Msgs
	}
	end()
	if err := errors.Join(l.Close(), f.Close()); err != nil {
		t.Fatal(err)
	}
	again, err := study.OpenFolder(f.Path, study.ReadWrite)
	if err != nil || len(again.Rows()) != 50 {
		t.Fatalf("%d rows, %v", len(again.Rows()), err)
	}
	l = serve(t, again, "")
	c = coordinate(t, l, again, false)
	var made atomic.Int64
	begin(t, worker(l, c, again, 2, func(context.Context, study.Variant) error { made.Add(1); return nil }))
	finish(t, again, c)
	if made.Load() > int64(200-before) {
		t.Errorf("%d runs were made again", made.Load()-int64(200-before))
	}
}

// stopper is an executor that fails after some rows.
type stopper struct {
	of  study.Executor
	n   int
	err error
}

func (s stopper) Run(ctx context.Context, v []study.Variant, done func(study.Row) error) error {
	return s.of.Run(ctx, v, func(r study.Row) error {
		if s.n--; s.n < 0 {
			return s.err
		}
		return done(r)
	})
}

// A worker that has joined finds the server of a coordinator that goes on: at the same address, with the same key.
func TestRejoin(t *testing.T) {
	f := folder(t, 300, "")
	l := serve(t, f, "127.0.0.1:0")
	c := coordinate(t, l, f, true)
	joined, err := Connect("", Credentials{File: filepath.Join(f.Path, "join.json")})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = joined.Close() })
	begin(t, worker(joined, c, f, 2, func(ctx context.Context, _ study.Variant) error { pause(ctx, time.Millisecond); return nil }))
	enough := errors.New("enough")
	if _, err := (&study.Study{Plan: f.Plan, Folder: f}).Run(t.Context(), stopper{c, 50, enough}); !errors.Is(err, enough) {
		t.Fatal(err)
	}
	address := l.server.Addr().String()
	c.Leave()
	if err := errors.Join(l.Close(), f.Close()); err != nil {
		t.Fatal(err)
	}
	again, err := study.OpenFolder(f.Path, study.ReadWrite)
	if err != nil {
		t.Fatal(err)
	}
	finish(t, again, coordinate(t, serve(t, again, address), again, true)) // by the worker of before
}

// At most so many runs are made at a time as an FMU has instances, by all workers together.
func TestMaxInstances(t *testing.T) {
	f := folder(t, 60, ", max-instances: {a: 3, b: 2}")
	l := serve(t, f, "")
	c := coordinate(t, l, f, false)
	var now, most atomic.Int64
	for range 3 {
		begin(t, worker(l, c, f, 3, func(ctx context.Context, _ study.Variant) error {
			n := now.Add(1)
			for m := most.Load(); n > m && !most.CompareAndSwap(m, n); m = most.Load() {
			}
			pause(ctx, 2*time.Millisecond)
			now.Add(-1)
			return nil
		}))
	}
	finish(t, f, c)
	if most.Load() != 2 {
		t.Errorf("%d runs at a time", most.Load())
	}
}

// A cluster of three servers loses one of them, the leader of the tasks, and the study has all its rows.
func TestThreeServers(t *testing.T) {
	servers := three(t)
	var urls []string
	for _, s := range servers {
		urls = append(urls, s.ClientURL())
	}
	f := folder(t, 400, "")
	l, err := Connect(strings.Join(urls, ","), Credentials{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = l.Close() })
	c := coordinate(t, l, f, true)
	var made atomic.Int64
	var once sync.Once
	begin(t, worker(l, c, f, 3, func(ctx context.Context, _ study.Variant) error {
		if made.Add(1) > 100 {
			once.Do(func() { go leader(t, servers, c).Shutdown() })
		}
		pause(ctx, 2*time.Millisecond)
		return nil
	}))
	finish(t, f, c)
}

// leader returns the server that leads the stream of tasks.
func leader(t *testing.T, servers []*server.Server, c *Coordinator) *server.Server {
	tasks, err := c.link.js.Stream(context.Background(), c.names.tasks())
	if err != nil {
		t.Error(err)
		return servers[0]
	}
	name := tasks.CachedInfo().Cluster.Leader
	i := slices.IndexFunc(servers, func(s *server.Server) bool { return s.Name() == name })
	return servers[max(i, 0)]
}

// three starts three servers that form a cluster.
func three(t *testing.T) []*server.Server {
	t.Helper()
	var routes []string
	var ports []int
	for range 3 {
		l, err := net.Listen("tcp", "127.0.0.1:0")
		if err != nil {
			t.Fatal(err)
		}
		ports = append(ports, l.Addr().(*net.TCPAddr).Port)
		routes = append(routes, "nats://"+l.Addr().String())
		defer l.Close()
		_ = l.Close() // the server takes the port
	}
	var out []*server.Server
	for i, port := range ports {
		s, err := server.NewServer(&server.Options{
			ServerName: fmt.Sprint("server", i), Host: "127.0.0.1", Port: server.RANDOM_PORT, NoSigs: true, NoLog: true, JetStream: true, StoreDir: t.TempDir(),
			Cluster: server.ClusterOpts{Name: "test", Host: "127.0.0.1", Port: port}, Routes: server.RoutesFromStr(strings.Join(routes, ",")),
		})
		if err != nil {
			t.Fatal(err)
		}
		s.Start()
		t.Cleanup(func() { s.Shutdown(); s.WaitForShutdown() })
		out = append(out, s)
	}
	for _, s := range out {
		if !s.ReadyForConnections(time.Minute) {
			t.Fatal("a server does not start")
		}
	}
	for end := time.Now().Add(time.Minute); time.Now().Before(end); time.Sleep(20 * time.Millisecond) {
		l, err := Connect(out[0].ClientURL(), Credentials{})
		if err != nil {
			t.Fatal(err)
		}
		// The cluster is ready when it can hold a stream in three places.
		_, err = l.js.CreateStream(t.Context(), jetstream.StreamConfig{Name: "READY", Replicas: 3})
		if err == nil {
			err = l.js.DeleteStream(t.Context(), "READY")
		}
		_ = l.Close()
		if err == nil {
			return out
		}
	}
	t.Fatal("the servers form no cluster")
	return nil
}

// BenchmarkRow is what a run costs beside the work of its engine.
func BenchmarkRow(b *testing.B) {
	dir := b.TempDir()
	path := filepath.Join(dir, "plan.yaml")
	plan := fmt.Sprintf("{system: none.ssp, vary: {a.x: 'linear(0, 1)'}, samples: %d, collect: {x: final(a.x)}}", b.N)
	p, err := study.Parse(path, []byte(plan), nil)
	if err != nil {
		b.Fatal(err)
	}
	f, err := study.Create(filepath.Join(dir, "study"), p, []byte(plan), &study.Inspection{})
	if err != nil {
		b.Fatal(err)
	}
	l, err := Serve(ServerOptions{Store: filepath.Join(dir, "queue")})
	if err != nil {
		b.Fatal(err)
	}
	c, err := Coordinate(b.Context(), l, f, false)
	if err != nil {
		b.Fatal(err)
	}
	ctx, cancel := context.WithCancel(b.Context())
	var running sync.WaitGroup
	running.Go(func() { _ = worker(l, c, f, 2, nil).Run(ctx) })
	b.ResetTimer()
	if _, err := (&study.Study{Plan: f.Plan, Folder: f}).Run(b.Context(), c); err != nil {
		b.Fatal(err)
	}
	b.StopTimer()
	cancel()
	running.Wait()
	_ = errors.Join(l.Close(), f.Close())
}
