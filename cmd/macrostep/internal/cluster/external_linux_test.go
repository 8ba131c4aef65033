package cluster

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/nats-io/nats-server/v2/server"

	"github.com/macrostep/macrostep/master/study"
)

// serverVariable names the configuration of a server that this program is.
const serverVariable = "MACROSTEP_TEST_NATS"

func TestMain(m *testing.M) {
	flag.Parse()
	if config := os.Getenv(serverVariable); config != "" {
		o, err := server.ProcessConfigFile(config)
		if err == nil {
			var s *server.Server
			if s, err = server.NewServer(o); err == nil {
				err = server.Run(s)
				s.WaitForShutdown()
			}
		}
		if err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		return
	}
	os.Exit(m.Run())
}

// natsServer is a server in a process of its own.
type natsServer struct {
	config, address string
	env             []string
	process         *exec.Cmd
}

var natsServers atomic.Int32

// newServer makes a server with a configuration, in which ADDRESS is its own: an address of the loopback that no one else has.
func newServer(t *testing.T, config string, env ...string) *natsServer {
	t.Helper()
	n, pid := natsServers.Add(1), os.Getpid()
	s := &natsServer{address: fmt.Sprintf("127.%d.%d.%d", 100+pid>>16&63, pid>>8&255, pid&255), env: env, config: filepath.Join(t.TempDir(), "nats.conf")}
	s.address += fmt.Sprint(":", 4200+n)
	if err := os.WriteFile(s.config, []byte(fmt.Sprintf("listen: %q\n%s", s.address, config)), 0o666); err != nil {
		t.Fatal(err)
	}
	s.start(t)
	t.Cleanup(s.kill)
	return s
}

// start starts the server, and returns when it can be reached.
func (s *natsServer) start(t *testing.T) {
	t.Helper()
	s.process = exec.Command("/proc/self/exe")
	s.process.Env = append(append(os.Environ(), serverVariable+"="+s.config), s.env...)
	s.process.Stderr = os.Stderr
	s.process.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
	if err := s.process.Start(); err != nil {
		t.Fatal(err)
	}
}

func (s *natsServer) kill() {
	_ = s.process.Process.Kill()
	_ = s.process.Wait()
}

// offer begins a study at servers, when one of them is there.
func offer(t *testing.T, f *study.Folder, url string) (*Queue, *Coordinator, *messages) {
	t.Helper()
	q, m := queue(t, f)
	for end := time.Now().Add(time.Minute); ; time.Sleep(20 * time.Millisecond) {
		l, err := Connect(url, Credentials{}, m.log)
		if err == nil {
			c, err := Offer(q, f, l)
			if err != nil {
				t.Fatal(err)
			}
			t.Cleanup(func() { _ = c.Close(false) })
			return q, c, m
		}
		if time.Now().After(end) {
			t.Fatal(err)
		}
	}
}

// enter joins the study at servers.
func enter(t *testing.T, url string) *Client {
	t.Helper()
	m := &messages{}
	l, err := Connect(url, Credentials{}, m.log)
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

// With the rights in the documentation, a worker can do as little at a server of the user's.
func TestAccounts(t *testing.T) {
	t.Parallel()
	page, err := os.ReadFile("../../../../docs/studies.md")
	if err != nil {
		t.Fatal(err)
	}
	accounts := regexp.MustCompile(`(?m)^    accounts \{\n(    .*\n)+`).FindString(string(page))
	s := newServer(t, accounts, "STUDY_PASSWORD=one", "WORKER1_PASSWORD=two", "WORKER2_PASSWORD=three")
	f := folder(t, 100, ", keep: all")
	q, c, m := offer(t, f, "nats://study:one@"+s.address)
	for _, url := range []string{s.address, "study:two@" + s.address, "nats://worker1:one@" + s.address} {
		if _, err := Connect(url, Credentials{}, m.log); err == nil || strings.Contains(err.Error(), "two") || strings.Contains(err.Error(), "one@") {
			t.Errorf("%s: %v", url, err)
		}
	}
	testBadWorker(t, f, q, c, m, func() *Client { return enter(t, "nats://worker1:two@"+s.address) }, enter(t, "nats://worker2:three@"+s.address))
}

// The environment has the user and the password if the URL has none.
func TestUserInEnvironment(t *testing.T) {
	s := newServer(t, `authorization {user: a, password: b}`)
	f := folder(t, 1, "")
	defer f.Close()
	_, _, _ = offer(t, f, "nats://a:b@"+s.address)
	t.Setenv(userVariable, "a")
	t.Setenv(passwordVariable, "b")
	if c := enter(t, "nats://"+s.address); !strings.HasPrefix(c.name, "a.") {
		t.Errorf("the worker is %s", c.name)
	}
}

// A user without the rights that it needs gets to know that.
func TestRightsMissing(t *testing.T) {
	t.Parallel()
	s := newServer(t, `authorization {users: [
		{user: a, password: b, permissions: {publish: "_INBOX.>", subscribe: "macrostep.>"}},
		{user: none, password: b, permissions: {publish: "x", subscribe: "x"}},
		{user: deaf, password: b, permissions: {publish: ">", subscribe: "x"}}]}`)
	f := folder(t, 1, "")
	defer f.Close()
	q, _, m := offer(t, f, "nats://a:b@"+s.address)
	for _, user := range []string{"none", "deaf"} {
		url := "nats://" + user + ":b@" + s.address
		l, err := Connect(url, Credentials{}, m.log)
		if err != nil {
			t.Fatal(err)
		}
		defer l.Close()
		if _, err := Offer(q, f, l); err == nil || !strings.Contains(err.Error(), "lists the rights") || !strings.Contains(err.Error(), user) {
			t.Error(err)
		}
		if _, err := Join(t.Context(), l, "", m.log); err == nil || !strings.Contains(err.Error(), "lists the rights") {
			t.Error(err)
		}
	}
}

var killedServers = flag.Int("killed-servers", 300, "variants of the study whose servers are killed")

// Three servers are killed and started again one after the other, and once all at a time; the coordinator goes away twice, and
// engines end: every variant has a row, with its value.
func TestServersKilled(t *testing.T) {
	t.Parallel()
	n := *killedServers
	f := folder(t, n, "")
	var servers []*natsServer
	var urls, routes []string
	for i := range 3 {
		s := newServer(t, "")
		host, _, _ := strings.Cut(s.address, ":")
		routes = append(routes, fmt.Sprintf("nats://%s:%d", host, 5200+int(natsServers.Load())))
		servers, urls = append(servers, s), append(urls, "nats://"+s.address)
		s.kill()
		text := fmt.Sprintf("listen: %q\nserver_name: server%d\ncluster {name: test, listen: %q, routes: %q}\n", s.address, i, strings.TrimPrefix(routes[i], "nats://"), routes)
		if err := os.WriteFile(s.config, []byte(strings.ReplaceAll(text, `" "`, `", "`)), 0o666); err != nil {
			t.Fatal(err)
		}
	}
	for _, s := range servers {
		s.start(t)
	}
	url := strings.Join(urls, ",")
	q, c, m := offer(t, f, url)
	var rows atomic.Int64
	crashes := map[int]bool{}
	var mu sync.Mutex
	engine := func(ctx context.Context, v study.Variant) error {
		pause(ctx, 5*time.Millisecond)
		mu.Lock()
		defer mu.Unlock()
		if v.ID%(n/10) == 5 && !crashes[v.ID] {
			crashes[v.ID] = true
			return &Death{Reason: "killed"}
		}
		rows.Add(1)
		return nil
	}
	var clients []*Client
	for range 2 {
		clients = append(clients, enter(t, url))
		begin(t, worker(clients[len(clients)-1], f.Plan, 2, engine))
	}
	go func() { // one after the other, then all
		for i := range 4 {
			for rows.Load() < int64((i+1)*n/6) && t.Context().Err() == nil {
				time.Sleep(time.Millisecond)
			}
			some := servers
			if i < 3 {
				some = servers[i : i+1]
			}
			for _, s := range some {
				s.kill()
			}
			for _, s := range some {
				s.start(t)
			}
		}
	}()
	for range 2 {
		some(t, f, q, n/4)
		if err := errors.Join(c.Close(false), f.Close()); err != nil {
			t.Fatal(err)
		}
		var err error
		if f, err = study.OpenFolder(f.Path, study.ReadWrite); err != nil {
			t.Fatal(err)
		}
		q, c, _ = offer(t, f, url)
	}
	finish(t, f, q)
	if err := c.Close(true); err != nil {
		t.Error(err)
	}
	if len(crashes) < 9 {
		t.Errorf("%d engines ended", len(crashes))
	}
	t.Logf("%d runs for %d rows\n%s", rows.Load(), n, m)
}

// A worker logs that its study does not answer, and ends with an error when its patience is over.
func TestPatience(t *testing.T) {
	t.Parallel()
	s := newServer(t, "")
	f := folder(t, 1, "")
	defer f.Close()
	_, c, _ := offer(t, f, "nats://"+s.address)
	client := enter(t, "nats://"+s.address)
	m := &messages{}
	client.log, client.silentTime, client.patience = m.log, time.Second, 2*time.Second
	if err := c.Close(false); err != nil {
		t.Fatal(err)
	}
	if err := worker(client, f.Plan, 2, nil).Run(t.Context()); err == nil || !strings.Contains(err.Error(), "has not answered for") {
		t.Error(err)
	}
	if !m.has("does not answer", "waiting for it") {
		t.Errorf("messages:\n%s", m)
	}
}

// A server that is lost while a study is offered is waited for.
func TestOfferedMeanwhile(t *testing.T) {
	t.Parallel()
	s := newServer(t, "")
	f := folder(t, 1, "")
	q, m := queue(t, f)
	l, err := Connect("nats://"+s.address, Credentials{}, m.log)
	for ; err != nil && t.Context().Err() == nil; l, err = Connect("nats://"+s.address, Credentials{}, m.log) {
		time.Sleep(20 * time.Millisecond)
	}
	if err := s.process.Process.Signal(syscall.SIGSTOP); err != nil { // Offer waits for its answer
		t.Fatal(err)
	}
	for state := ""; !strings.HasPrefix(state, "T"); {
		text, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", s.process.Process.Pid))
		if err != nil {
			t.Fatal(err)
		}
		_, state, _ = strings.Cut(string(text), ") ")
	}
	again := make(chan struct{})
	go func() { pause(t.Context(), 300*time.Millisecond); s.kill(); s.start(t); close(again) }()
	c, err := Offer(q, f, l)
	if <-again; err != nil {
		t.Fatal(err)
	}
	for !l.conn.IsConnected() && t.Context().Err() == nil {
		time.Sleep(time.Millisecond)
	}
	begin(t, worker(enter(t, "nats://"+s.address), f.Plan, 1, func(context.Context, study.Variant) error { return nil }))
	finish(t, f, q)
	if err := c.Close(true); err != nil {
		t.Error(err)
	}
}
