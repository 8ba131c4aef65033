package cluster

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/macrostep/macrostep/fmi/secret"
	"github.com/macrostep/macrostep/master/study"
)

// folder makes the folder of a study of so many variants. Its system is never opened.
func folder(t testing.TB, samples int, more string) *study.Folder {
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

// before is what an engine does before it has a row.
type before func(ctx context.Context, v study.Variant) error

// worker makes such rows.
func worker(tasks Tasks, p *study.Plan, engines int, do before) *Worker {
	return &Worker{Tasks: tasks, Engines: engines, New: func(int) Engine {
		return engineFunc(func(ctx context.Context, v study.Variant) (study.Row, error) {
			if do != nil {
				if err := do(ctx, v); err != nil {
					return study.Row{}, err
				}
			}
			return double(p, v), nil
		})
	}}
}

// begin runs a worker until the function that it returns is called, or the test ends.
func begin(t testing.TB, w *Worker) (end func()) {
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

// messages are those of a queue or a client.
type messages struct {
	mu   sync.Mutex
	list []string
}

func (m *messages) log(text string) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.list = append(m.list, text)
}

// has reports whether a message has all the parts.
func (m *messages) has(parts ...string) bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	return slices.ContainsFunc(m.list, func(text string) bool {
		return !slices.ContainsFunc(parts, func(p string) bool { return !strings.Contains(text, p) })
	})
}

func (m *messages) String() string {
	m.mu.Lock()
	defer m.mu.Unlock()
	return strings.Join(m.list, "\n")
}

func queue(t testing.TB, f *study.Folder) (*Queue, *messages) {
	m := &messages{}
	q := NewQueue(f.Plan, m.log)
	t.Cleanup(q.Close)
	return q, m
}

// serve begins a study with a server at an address.
func serve(t testing.TB, f *study.Folder, address string) (*Queue, *Coordinator, *messages) {
	t.Helper()
	q, m := queue(t, f)
	c, err := Serve(q, f, address)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = c.Close(false) }) // most tests have done so
	return q, c, m
}

// join joins the study in a folder.
func join(t testing.TB, f *study.Folder) *Client {
	t.Helper()
	m := &messages{}
	l, err := Connect("", Credentials{File: filepath.Join(f.Path, study.TicketFile)}, m.log)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = l.Close() })
	c, err := Join(t.Context(), l, "", m.log)
	if err != nil {
		t.Fatal(err)
	}
	return c
}

// finish carries out the study and expects every variant once, with its value.
func finish(t testing.TB, f *study.Folder, q *Queue) []study.Row {
	t.Helper()
	found, err := (&study.Study{Plan: f.Plan, Folder: f}).Run(t.Context(), q)
	if err != nil {
		t.Fatal(err)
	}
	if err := f.Close(); err != nil {
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
	return found.Rows
}

// some carries out a study until there are so many rows.
func some(t testing.TB, f *study.Folder, q *Queue, rows int) {
	t.Helper()
	enough := errors.New("enough")
	if _, err := (&study.Study{Plan: f.Plan, Folder: f}).Run(t.Context(), &stopper{q, rows, enough}); !errors.Is(err, enough) {
		t.Fatal(err)
	}
}

// stopper is an executor that fails after some rows.
type stopper struct {
	of  study.Executor
	n   int
	err error
}

func (s *stopper) Run(ctx context.Context, v []study.Variant, done func(study.Row) error) error {
	return s.of.Run(ctx, v, func(r study.Row) error {
		if s.n--; s.n < 0 {
			return s.err
		}
		return done(r)
	})
}

func TestLocal(t *testing.T) {
	f := folder(t, 300, "")
	q, _ := queue(t, f)
	begin(t, worker(q.Local(), f.Plan, 2, nil))
	finish(t, f, q)
}

// Of two rows of a variant the first counts.
func TestRowOnce(t *testing.T) {
	f := folder(t, 1, "")
	defer f.Close()
	q, _ := queue(t, f)
	v := study.Variant{Values: []string{"0.5"}}
	var first study.Row
	ended := make(chan error)
	go func() {
		ended <- q.Run(t.Context(), []study.Variant{v}, func(r study.Row) error { first = r; return nil })
	}()
	for engine := range 2 {
		row := double(f.Plan, v)
		row.Collected[0] = float64(1 + engine)
		if engine == 0 {
			if _, err := q.next(t.Context(), holder{own, 0}); err != nil {
				t.Fatal(err)
			}
		}
		if err := q.deliver(holder{own, engine}, &Result{Variant: v, Row: &row}); err != nil {
			t.Fatal(err)
		}
	}
	if err := <-ended; err != nil || first.Collected[0] != 1 {
		t.Errorf("%+v, %v", first, err)
	}
}

// A variant that ends its engine three times has a row that says so; one that does so twice, or whose engine is ended from
// outside, has its values.
func TestDeaths(t *testing.T) {
	f := folder(t, 60, "")
	q, _ := queue(t, f)
	var mu sync.Mutex
	tries := map[int]int{}
	begin(t, worker(q.Local(), f.Plan, 2, func(_ context.Context, v study.Variant) error {
		mu.Lock()
		defer mu.Unlock()
		tries[v.ID]++
		if v.ID%20 == 7 || v.ID%20 == 9 && tries[v.ID] <= 2 {
			return &Death{Reason: "it is gone"}
		}
		return nil
	}))
	for i, r := range finish(t, f, q) {
		if bad := i%20 == 7; bad != (r.Status == study.Crashed) || bad && (tries[i] != 3 || r.Reason != "it is gone; so did 3 engines in all") {
			t.Errorf("run %d after %d tries: %+v", i, tries[i], r)
		}
	}
}

// A worker on which every engine ends gives no variant a row, as long as there is another.
func TestBrokenWorker(t *testing.T) {
	t.Parallel()
	f := folder(t, 40, "")
	q, c, _ := serve(t, f, "127.0.0.1:0")
	begin(t, worker(join(t, f), f.Plan, 2, func(ctx context.Context, _ study.Variant) error { return &Death{Reason: "no memory"} }))
	begin(t, worker(q.Local(), f.Plan, 1, func(ctx context.Context, _ study.Variant) error { pause(ctx, 5*time.Millisecond); return nil }))
	for _, r := range finish(t, f, q) {
		if r.Status != study.OK {
			t.Errorf("%+v", r)
		}
	}
	if err := c.Close(true); err != nil {
		t.Error(err)
	}
}

// Without the file of the study nobody joins. With it, workers join over TLS and leave again, in the middle of their runs,
// and nothing is lost. Files travel once per machine, also those of runs that are kept, and rows that are too large for a message.
func TestJoin(t *testing.T) {
	t.Parallel()
	f := folder(t, 400, ", keep: all")
	big := make([]byte, 3*largestPiece+17)
	for i := range big {
		big[i] = byte(i * i >> 8)
	}
	if err := os.WriteFile(filepath.Join(f.Path, "files", "big"), big, 0o666); err != nil {
		t.Fatal(err)
	}
	q, c, m := serve(t, f, "127.0.0.1:0")
	for _, file := range []string{study.TicketFile, study.KeysFile} {
		if info, err := os.Stat(filepath.Join(f.Path, file)); err != nil || runtime.GOOS != "windows" && info.Mode().Perm() != 0o600 {
			t.Errorf("%v, %v", info.Mode(), err)
		}
	}
	other := folder(t, 1, "")
	_, _, _ = serve(t, other, "127.0.0.1:0")
	for _, who := range []Credentials{{}, {File: filepath.Join(other.Path, study.TicketFile)}} {
		if _, err := Connect("tls://"+c.Address(), who, m.log); err == nil {
			t.Errorf("%+v has joined", who)
		}
	}
	cache := t.TempDir()
	var ends []func()
	var names []string
	var made [2]atomic.Int64
	for i := range made {
		client, dir := join(t, f), t.TempDir()
		names = append(names, client.name)
		if err := client.Download(t.Context(), cache, dir); err != nil {
			t.Fatal(err)
		}
		copied, err := study.OpenFolder(dir, study.ReadOnly)
		if err != nil || copied.Plan.Design.Samples != 400 {
			t.Fatal(err)
		}
		if data, err := os.ReadFile(filepath.Join(dir, "files", "big")); err != nil || string(data) != string(big) {
			t.Errorf("a file has %d bytes, %v", len(data), err)
		}
		c.place = map[string]string{} // from here on, files are not sent
		runs, err := copied.Runs()
		if err != nil {
			t.Fatal(err)
		}
		w := worker(client, f.Plan, 2, func(ctx context.Context, v study.Variant) error {
			made[i].Add(1)
			pause(ctx, time.Millisecond)
			return os.WriteFile(filepath.Join(runs, fmt.Sprintf("%d.csv", v.ID)), kept(v, big), 0o666)
		})
		w.Kept = runs
		ends = append(ends, begin(t, w))
	}
	go func() {
		for made[0].Load() < 50 {
			time.Sleep(time.Millisecond)
		}
		ends[0]()
	}()
	finish(t, f, q)
	if err := c.Close(true); err != nil {
		t.Error(err)
	}
	for id := range 400 {
		if data, err := os.ReadFile(filepath.Join(f.Path, "runs", fmt.Sprintf("%d.csv", id))); err != nil || string(data) != string(kept(study.Variant{ID: id}, big)) {
			t.Fatalf("the table of run %d: %d bytes, %v", id, len(data), err)
		}
	}
	if made[0].Load() < 50 || made[1].Load() < 50 {
		t.Errorf("runs by worker: %d, %d", made[0].Load(), made[1].Load())
	}
	left, _ := filepath.Glob(filepath.Join(f.Path, study.Incoming, "*"))
	left = slices.DeleteFunc(left, func(path string) bool { return strings.HasPrefix(filepath.Base(path), names[0]) }) // it has left
	if len(left) > 0 {
		t.Errorf("left: %v", left)
	}
}

// kept is the table of a run.
func kept(v study.Variant, big []byte) []byte {
	if v.ID%100 == 3 {
		return append([]byte(fmt.Sprint(v.ID)), big...)
	}
	return []byte(fmt.Sprint(v.ID))
}

// A row that is too large for a message arrives in pieces.
func TestLargeRow(t *testing.T) {
	t.Parallel()
	f := folder(t, 1, "")
	q, c, _ := serve(t, f, "127.0.0.1:0")
	v := study.Variant{ID: 0, Values: []string{"0.5"}}
	row := double(f.Plan, v)
	row.Reason = "warning: " + strings.Repeat("long ", 300)
	client := join(t, f)
	client.link.most = 100
	got := make(chan study.Row, 1)
	go func() {
		if err := q.Run(t.Context(), []study.Variant{v}, func(r study.Row) error { got <- r; return nil }); err != nil {
			t.Error(err)
		}
		q.Close()
	}()
	w := &Worker{Tasks: client, Engines: 1, New: func(int) Engine {
		return engineFunc(func(context.Context, study.Variant) (study.Row, error) { return row, nil })
	}}
	if err := w.Run(t.Context()); err != nil {
		t.Fatal(err)
	}
	if r := <-got; r.Reason != row.Reason {
		t.Errorf("%+v", r)
	}
	if err := errors.Join(c.Close(true), f.Close()); err != nil {
		t.Error(err)
	}
}

// A worker that has joined finds the server of a study that goes on: at the same address, with the same key. What it ran
// meanwhile counts: another engine may run it again only before it is delivered.
func TestRejoin(t *testing.T) {
	t.Parallel()
	f := folder(t, 300, "")
	q, c, _ := serve(t, f, "127.0.0.1:0")
	address := c.Address()
	var made sync.Map
	again, going := atomic.Int64{}, make(chan struct{})
	client := join(t, f)
	begin(t, worker(client, f.Plan, 2, func(ctx context.Context, v study.Variant) error {
		if _, twice := made.LoadOrStore(v.ID, true); twice {
			again.Add(1)
		}
		if v.ID >= 62 { // these are run while there is no coordinator
			select {
			case <-going:
			case <-ctx.Done():
			}
		}
		return nil
	}))
	some(t, f, q, 60)
	if err := errors.Join(c.Close(false), f.Close()); err != nil {
		t.Fatal(err)
	}
	f, err := study.OpenFolder(f.Path, study.ReadWrite)
	if err != nil || len(f.Rows()) != 60 {
		t.Fatalf("%d rows, %v", len(f.Rows()), err)
	}
	q, c, _ = serve(t, f, address)
	close(going)
	finish(t, f, q) // by the worker of before
	if err := c.Close(true); err != nil {
		t.Error(err)
	}
	if n := again.Load(); n > 2 {
		t.Errorf("%d runs were made again", n)
	}
}

// At most so many runs are made at a time as an FMU has instances, by all workers together.
func TestMaxInstances(t *testing.T) {
	t.Parallel()
	f := folder(t, 60, ", max-instances: {a: 3, b: 2}")
	q, c, _ := serve(t, f, "127.0.0.1:0")
	var now, most atomic.Int64
	for i := range 3 {
		tasks := q.Local()
		if i > 0 {
			tasks = join(t, f)
		}
		begin(t, worker(tasks, f.Plan, 3, func(ctx context.Context, _ study.Variant) error {
			n := now.Add(1)
			for m := most.Load(); n > m && !most.CompareAndSwap(m, n); m = most.Load() {
			}
			pause(ctx, 2*time.Millisecond)
			now.Add(-1)
			return nil
		}))
	}
	finish(t, f, q)
	if most.Load() != 2 {
		t.Errorf("%d runs at a time", most.Load())
	}
	if err := c.Close(true); err != nil {
		t.Error(err)
	}
}

// What a worker holds for ever goes to another when the time limit is over. Without one, or where a licence is missing for that,
// there is a warning.
func TestHolds(t *testing.T) {
	for _, more := range []string{", time-limit: 50ms, max-instances: {a: 2}", ", max-instances: {a: 2}"} {
		f := folder(t, 3, more)
		q, m := queue(t, f)
		q.mu.Lock()
		q.lease, q.stall = 50*time.Millisecond, 50*time.Millisecond
		q.mu.Unlock()
		q.label("bad", "lab7")
		go func() {
			v, err := q.next(t.Context(), holder{"bad", 0})
			for err == nil && t.Context().Err() == nil && q.hold(holder{"bad", 0}, v) {
				time.Sleep(5 * time.Millisecond)
			}
		}()
		ctx, cancel := context.WithCancel(t.Context())
		done := make(chan error, 1)
		go func() {
			found, err := (&study.Study{Plan: f.Plan, Folder: f}).Run(ctx, q)
			if err == nil && len(found.Rows) != 3 {
				err = fmt.Errorf("%d rows", len(found.Rows))
			}
			done <- err
		}()
		for len(q.holders()) == 0 { // the bad worker comes first
			time.Sleep(time.Millisecond)
		}
		begin(t, worker(q.Local(), f.Plan, 1, nil))
		if f.Plan.TimeLimit == 0 {
			for !m.has("warning: 1 of the runs", "run 0 on lab7 has taken", "time-limit") {
				time.Sleep(time.Millisecond)
			}
			cancel()
		}
		if err := <-done; err != nil && !errors.Is(err, context.Canceled) {
			t.Error(err)
		}
		cancel()
		if err := f.Close(); err != nil {
			t.Error(err)
		}
	}
}

// A variant that ends an engine on every worker that is there has a row that says so. A death that arrives twice counts once.
func TestDeathsEverywhere(t *testing.T) {
	t.Parallel()
	f := folder(t, 3, "")
	q, c, _ := serve(t, f, "127.0.0.1:0")
	var deaths atomic.Int64
	die := func(_ context.Context, v study.Variant) error {
		if v.ID == 1 {
			deaths.Add(1)
			return &Death{Reason: "it is gone"}
		}
		return nil
	}
	begin(t, worker(q.Local(), f.Plan, 1, die))
	begin(t, worker(join(t, f), f.Plan, 1, die))
	for _, r := range finish(t, f, q) {
		if (r.Status == study.Crashed) != (r.ID == 1) {
			t.Errorf("%+v", r)
		}
	}
	if deaths.Load() != mostDeaths {
		t.Errorf("%d deaths", deaths.Load())
	}
	if err := c.Close(true); err != nil {
		t.Error(err)
	}

	f = folder(t, 1, "")
	defer f.Close()
	q, _ = queue(t, f)
	v := study.Variant{Values: []string{"0.5"}}
	go func() {
		if err := q.Run(t.Context(), []study.Variant{v}, func(study.Row) error { return nil }); !errors.Is(err, context.Canceled) {
			t.Errorf("it has a row, %v", err)
		}
	}()
	h := holder{own, 0}
	if _, err := q.next(t.Context(), h); err != nil {
		t.Fatal(err)
	}
	for range 2 * mostDeaths {
		if err := q.deliver(h, &Result{Variant: v, Death: "it is gone"}); err != nil {
			t.Error(err)
		}
	}
	if n := q.tasks[0].deaths; n != 1 {
		t.Errorf("%d deaths", n)
	}
}

// Workers that take all tasks under many names, and hold them, do not keep others from the runs.
func TestHoarders(t *testing.T) {
	t.Parallel()
	for _, more := range []string{"", ", time-limit: 10ms, max-instances: {a: 2}"} {
		f := folder(t, 30, more)
		q, _ := queue(t, f)
		q.mu.Lock()
		q.lease = 50 * time.Millisecond
		q.mu.Unlock()
		for i := range 10 {
			for engine := range 8 {
				go func() {
					h := holder{fmt.Sprint("bad", i), engine}
					for t.Context().Err() == nil {
						v, err := q.next(t.Context(), h)
						for err == nil && q.hold(h, v) && t.Context().Err() == nil {
							time.Sleep(5 * time.Millisecond)
						}
					}
				}()
			}
		}
		done := make(chan bool)
		go func() { finish(t, f, q); close(done) }()
		for more == "" && len(q.holders()) < 30 {
			time.Sleep(time.Millisecond)
		}
		begin(t, worker(q.Local(), f.Plan, 1, nil))
		<-done
	}
}

// holders returns who runs something.
func (q *Queue) holders() (all []holder) {
	q.mu.Lock()
	defer q.mu.Unlock()
	return slices.Collect(maps.Keys(q.held))
}

// A worker of another version is refused, with both versions.
func TestVersions(t *testing.T) {
	f := folder(t, 1, "")
	defer f.Close()
	_, _, m := serve(t, f, "127.0.0.1:0")
	client := join(t, f)
	var a answer
	_, err := client.ask(t.Context(), opJoin, &request{Version: "v9.8.7\x1b[2J", Host: "far\nforged"}, nil, &a)
	if err == nil || !strings.Contains(err.Error(), "v9.8.7") || !strings.Contains(err.Error(), "the study runs with") {
		t.Error(err)
	}
	if strings.ContainsAny(m.String(), "\x1b") || strings.Contains(m.String(), "\nforged") {
		t.Errorf("%q", m)
	}
	path := filepath.Join(f.Path, study.TicketFile)
	data, err := os.ReadFile(path)
	if err == nil {
		err = os.WriteFile(path, []byte(strings.Replace(string(data), `"version"`, `"was"`, 1)), 0o600)
	}
	if err != nil {
		t.Fatal(err)
	}
	if _, err := Connect("", Credentials{File: path}, m.log); err == nil || !strings.Contains(err.Error(), "an earlier version") {
		t.Error(err)
	}
}

// Keys and tickets are refused if others can have read or written them, and keys that are not complete.
func TestSecretsRefused(t *testing.T) {
	f := folder(t, 1, "")
	defer f.Close()
	k, err := keysOf(f.Path)
	if err != nil || k.resumed {
		t.Fatal(err)
	}
	path := filepath.Join(f.Path, study.KeysFile)
	if again, err := keysOf(f.Path); err != nil || !again.resumed || again.Study != k.Study || again.Seed != k.Seed {
		t.Errorf("%v, %+v", err, again)
	}
	for what, change := range map[string]func(k *keys){
		"study":       func(k *keys) { k.Study = "a b" },
		"seal":        func(k *keys) { k.Seal = nil },
		"seed":        func(k *keys) { k.Seed = k.Seed[1:] },
		"key":         func(k *keys) { k.Key = "" },
		"certificate": func(k *keys) { k.Certificate = k.Key },
	} {
		bad := *k
		change(&bad)
		if err := secret.Write(path, bad); err != nil {
			t.Fatal(err)
		}
		if _, err := keysOf(f.Path); err == nil || !strings.HasPrefix(err.Error(), path+": the file is damaged; remove the file") {
			t.Errorf("%s: %v", what, err)
		}
	}
	if err := errors.Join(os.Remove(path), secret.Write(path, k)); err != nil {
		t.Fatal(err)
	}
	_, _, m := serve(t, f, "127.0.0.1:0")
	ticket := filepath.Join(f.Path, study.TicketFile)
	for path, read := range map[string]func() error{
		path: func() error { _, err := keysOf(f.Path); return err },
		ticket: func() error {
			l, err := Connect("", Credentials{File: ticket}, m.log)
			if err == nil {
				err = l.Close()
			}
			return err
		},
	} {
		if err := read(); err != nil {
			t.Error(err)
		}
		if runtime.GOOS == "windows" {
			continue
		}
		if err := os.Chmod(path, 0o644); err != nil {
			t.Fatal(err)
		}
		if err := read(); err == nil || !strings.HasPrefix(err.Error(), path+": other users have rights") ||
			!strings.HasSuffix(err.Error(), "chmod 600 "+path) {
			t.Error(err)
		}
		if err := os.Chmod(path, 0o600); err != nil {
			t.Fatal(err)
		}
		if os.Geteuid() != 0 { // who may give files away
			continue
		}
		if err := os.Chown(path, 65534, -1); err != nil {
			t.Fatal(err)
		}
		if err := read(); err == nil || !strings.HasPrefix(err.Error(), path+" belongs to another user (65534)") {
			t.Error(err)
		}
	}
	for _, text := range []string{"[1]", "neither"} {
		other := filepath.Join(t.TempDir(), "other")
		if err := os.WriteFile(other, []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
		if _, err := Connect("", Credentials{File: other}, m.log); err == nil || !strings.HasPrefix(err.Error(), other+": this is neither the join.json") {
			t.Errorf("%s: %v", text, err)
		}
	}
}

// BenchmarkRow is what a run costs beside the work of its engine.
func BenchmarkRow(b *testing.B) {
	for _, where := range []string{"local", "remote"} {
		b.Run(where, func(b *testing.B) {
			f := folder(b, b.N, "")
			q, c, _ := serve(b, f, "127.0.0.1:0")
			tasks := q.Local()
			if where == "remote" {
				tasks = join(b, f)
			}
			begin(b, worker(tasks, f.Plan, 2, nil))
			b.ResetTimer()
			finish(b, f, q)
			b.StopTimer()
			_ = c.Close(true)
		})
	}
}
