package cluster

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/nats-io/nats.go"

	"github.com/macrostep/macrostep/master/study"
)

// A worker with a key that does whatever its key lets it, and tries the rest, changes no row and ends nothing.
func testBadWorker(t *testing.T, f *study.Folder, q *Queue, c *Coordinator, m *messages, another func() *Client, good *Client) {
	bad := another()
	q.mu.Lock()
	q.lease = 300 * time.Millisecond
	q.mu.Unlock()
	conn := bad.link.conn
	// What its key does not let it do, the server refuses.
	errs := make(chan error, 100)
	conn.SetErrorHandler(func(_ *nats.Conn, _ *nats.Subscription, err error) { errs <- err })
	refused := func(what, subject string, do func(subject string) error) {
		t.Helper()
		if err := do(subject); err != nil {
			t.Fatal(err)
		}
		select {
		case err := <-errs:
			if !errors.Is(err, nats.ErrPermissionViolation) || !strings.Contains(err.Error(), what+` to "`+subject+`"`) {
				t.Errorf("%s to %s: %v", what, subject, err)
			}
		case <-time.After(time.Minute):
			t.Errorf("%s to %s is not refused", what, subject)
		}
	}
	publish := func(subject string) error { return conn.PublishRequest(subject, conn.NewInbox(), []byte("{}\n")) }
	subscribe := func(subject string) error { _, err := conn.SubscribeSync(subject); return err }
	for _, subject := range []string{
		"$JS.API.INFO", "$JS.API.STREAM.LIST", "$JS.API.STREAM.CREATE.X", "$JS.API.STREAM.DELETE.X", "$JS.API.STREAM.PURGE.X",
		"$JS.API.CONSUMER.CREATE.X", "$JS.ACK.X.Y.1.1.1.1.1", "$SYS.REQ.SERVER.PING", "$O.X.C.Y",
		subject(good.name, c.study, opNext), subject(c.link.name+".x", c.study, opNext), "macrostep." + c.study + ".end",
		"_INBOX." + good.link.name + ".x.y", "_INBOX." + c.link.name + ".x", "anything",
	} {
		refused("Publish", subject, publish)
	}
	for _, subject := range []string{">", "macrostep.>", "_INBOX.>", "_INBOX." + good.link.name + ".>", "macrostep.*.*." + c.study + ".next", "$JS.>", "$SYS.>"} {
		refused("Subscription", subject, subscribe)
	}
	// What it may send harms nobody. Answers go to itself only.
	victim, err := good.link.conn.SubscribeSync(good.link.conn.NewInbox())
	if err != nil {
		t.Fatal(err)
	}
	order := make(chan error, 1)
	var rows []study.Row
	go func() {
		found, err := (&study.Study{Plan: f.Plan, Folder: f}).Run(t.Context(), q)
		rows = found.Rows
		order <- err
	}()
	for i := range mostBad + 2 {
		w := another()
		v, err := w.Next(t.Context(), 0, nil)
		if err != nil {
			t.Fatal(err)
		}
		message, _ := pack(request{Engine: 0}, nil)
		if err := w.link.conn.PublishRequest(w.subject(opNext), victim.Subject, message); err != nil {
			t.Error(err)
		}
		w.misbehave(t, f, v, i, another)
	}
	hoard := another()
	for engine := range 20 { // it keeps them, and says that it runs them
		v, err := hoard.Next(t.Context(), engine, nil)
		if err != nil {
			t.Fatal(err)
		}
		go func() {
			for t.Context().Err() == nil {
				hoard.Hold(t.Context(), engine, v)
				pause(t.Context(), 20*time.Millisecond)
			}
		}()
	}
	begin(t, worker(good, f.Plan, 2, nil))
	if err := <-order; err != nil {
		t.Fatal(err)
	}
	if err := errors.Join(c.Close(true), f.Close()); err != nil {
		t.Error(err)
	}
	slices.SortFunc(rows, func(a, b study.Row) int { return a.ID - b.ID })
	for i, r := range rows {
		if r.ID != i || r.Status != study.OK || r.Collected[0] != 2*float64(i) {
			t.Fatalf("row %d: %+v", i, r)
		}
	}
	if len(rows) != f.Plan.Design.Samples {
		t.Errorf("%d rows", len(rows))
	}
	if m, err := victim.NextMsg(time.Millisecond); !errors.Is(err, nats.ErrTimeout) {
		t.Errorf("another got %v, %v", m, err)
	}
	if !m.has("warning: the worker on ", "which it was not given") || !m.has("gets no more runs") {
		t.Errorf("messages:\n%s", m)
	}
	for _, path := range []string{"evil", "../evil", "runs/evil", "runs/0.csv"} {
		if _, err := os.Stat(filepath.Join(f.Path, path)); err == nil {
			t.Errorf("there is %s", path)
		}
	}
}

// misbehave sends what no worker should send, beginning with the first, until the study sends the worker away.
func (c *Client) misbehave(t *testing.T, f *study.Folder, v study.Variant, first int, another func() *Client) {
	t.Helper()
	row := double(f.Plan, v)
	other := study.Variant{ID: v.ID + 1, Values: v.Values}
	stranger := double(f.Plan, other)
	none := study.Row{Variant: v, Status: study.OK, Verdict: row.Verdict}
	forged := row
	forged.Reason = "warning: x\nrun 8: ok\x1b[2J"
	evil := []byte("evil")
	sum := fmt.Sprintf("%x", sha256.Sum256(evil))
	seal := c.seals[0]
	list := []request{
		{Engine: 0, Variant: &v, Seal: seal, Row: &stranger},
		{Engine: 0, Variant: &other, Seal: seal, Row: &stranger},
		{Engine: 0, Variant: &v, Seal: seal, Row: &none},
		{Engine: 0, Variant: &v, Seal: seal, Row: &forged},
		{Engine: 0, Variant: &v, Seal: "x", Row: &row},
		{Engine: 0, Variant: &v, Seal: seal, Row: &row, Kept: []sent{{"../evil", sum}}},
		{Engine: 0, Variant: &v, Seal: seal, Row: &row, Kept: []sent{{fmt.Sprint(v.ID, ".csv"), "../../evil"}}},
		{Engine: 0, Variant: &v, Seal: seal, Large: "../../evil"},
		{Engine: 0, Variant: &v, Seal: seal},
		{Engine: -1},
		{Engine: MostEngines},
	}
	if first == 0 { // none of these is a message at all
		w := another()
		for _, op := range []string{opJoin, opFile, opNext, opHold, opRelease, opUpload, opStudies, "else"} {
			for _, text := range []string{"", "\n", "null\n", "[]\n", "{\"row\": 7}\n", strings.Repeat("[", 10_000) + "\n", "no newline"} {
				_ = w.link.conn.PublishRequest(w.subject(op), w.link.conn.NewInbox(), []byte(text))
			}
		}
	}
	for n := range mostBad {
		var a answer
		if _, err := c.ask(t.Context(), opNext, &list[(first*mostBad+n)%len(list)], nil, &a); err == nil {
			t.Errorf("the answer is %+v", a)
		}
	}
	var a answer
	for _, upload := range []request{
		{Variant: &v, Seal: seal, Hash: "../../evil"}, {Variant: &v, Seal: seal, Hash: sum, At: 1 << 40}, {Hash: sum}, {Hash: sum, At: -1},
	} {
		_, _ = c.ask(t.Context(), opUpload, &upload, evil, &a) // whatever the answer is
	}
	if _, err := c.Next(t.Context(), 0, nil); err == nil || !strings.Contains(err.Error(), "no more runs") {
		t.Errorf("it gets %v", err)
	}
	for _, get := range []request{{Hash: "../../etc/passwd", Most: 10}, {Hash: c.index, At: -5, Most: 1 << 40}, {Hash: c.index, At: 1 << 60, Most: -1}} {
		_, _ = c.ask(t.Context(), opFile, &get, nil, &a)
	}
}

func TestBadWorker(t *testing.T) {
	t.Parallel()
	f := folder(t, 100, ", keep: all")
	q, c, m := serve(t, f, "127.0.0.1:0")
	testBadWorker(t, f, q, c, m, func() *Client { return join(t, f) }, join(t, f))
}

// Files of a run arrive only if the study keeps them, and only as what they are.
func TestUploads(t *testing.T) {
	t.Parallel()
	for _, keep := range []string{"all", "none"} {
		f := folder(t, 3, ", keep: "+keep)
		q, c, m := serve(t, f, "127.0.0.1:0")
		done := make(chan bool)
		go func() { finish(t, f, q); close(done) }()
		bad := join(t, f)
		v, err := bad.Next(t.Context(), 0, nil)
		if err != nil {
			t.Fatal(err)
		}
		evil := bytes.Repeat([]byte("evil"), 100_000)
		sum, row := fmt.Sprintf("%x", sha256.Sum256(evil)), double(f.Plan, v)
		q1 := &request{Variant: &v, Seal: bad.seal(0), Row: &row, Kept: []sent{{fmt.Sprint(v.ID, ".csv"), sum}, {fmt.Sprint(v.ID, ".json"), sum}}}
		if err := bad.upload(t.Context(), q1, sum, bytes.NewReader(evil)); (err == nil) != (keep == "all") {
			t.Errorf("keep: %s: %v", keep, err)
		}
		var a answer
		if _, err := bad.ask(t.Context(), opNext, q1, nil, &a); err == nil {
			t.Errorf("keep: %s: the answer is %+v", keep, a)
		}
		begin(t, worker(q.Local(), f.Plan, 1, nil))
		<-done
		bad.Release(0)
		if err := c.Close(true); err != nil {
			t.Error(err)
		}
		if left, _ := filepath.Glob(filepath.Join(f.Path, "runs", "*")); len(left) > 0 || !m.has("warning: the worker on ") {
			t.Errorf("keep: %s: %v, messages:\n%s", keep, left, m)
		}
	}
}

// An upload that is damaged, as by a crash of the machine, is sent again.
func TestDamagedUpload(t *testing.T) {
	t.Parallel()
	f := folder(t, 1, ", keep: all")
	q, c, m := serve(t, f, "127.0.0.1:0")
	client, kept := join(t, f), t.TempDir()
	content := []byte("the table of run 0")
	w := worker(client, f.Plan, 1, func(context.Context, study.Variant) error {
		partial := c.upload(holder{client.name, 0}, sumOf(content))
		return errors.Join(os.MkdirAll(c.incoming(), 0o777), os.WriteFile(partial, make([]byte, len(content)), 0o666),
			os.WriteFile(filepath.Join(kept, "0.csv"), content, 0o666))
	})
	w.Kept = kept
	begin(t, w)
	finish(t, f, q)
	if data, err := os.ReadFile(filepath.Join(f.Path, "runs", "0.csv")); err != nil || !bytes.Equal(data, content) {
		t.Errorf("%q, %v", data, err)
	}
	if err := c.Close(true); err != nil || m.String() != "" {
		t.Errorf("%v, messages:\n%s", err, m)
	}
}

// Bytes of a message that are whatever they are make no coordinator panic.
func FuzzMessage(f *testing.F) {
	for _, q := range []request{{}, {Variant: &study.Variant{ID: 1, Values: []string{"2"}}, Row: &study.Row{}}} {
		data, err := pack(q, []byte("data"))
		if err != nil {
			f.Fatal(err)
		}
		f.Add(data)
	}
	where := folder(f, 3, "")
	q, _ := queue(f, where)
	go func() {
		_ = q.Run(context.Background(), []study.Variant{{ID: 1, Values: []string{"2"}}}, func(study.Row) error { return nil })
	}()
	c := coordinate(q, where, &keys{Study: "x", Seal: []byte("x")}, nil, nil)
	f.Fuzz(func(t *testing.T, message []byte) {
		var r request
		if _, err := unpack(message, &r); err != nil {
			return
		}
		if r.Variant == nil {
			r.Variant = &study.Variant{ID: 1, Values: []string{"2"}}
		}
		_ = c.deliver(holder{"w.w", 0}, &r)
		_, _ = json.Marshal(r)
	})
}
