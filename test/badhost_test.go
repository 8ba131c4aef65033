package test

import (
	"crypto/tls"
	"encoding/binary"
	"encoding/json"
	"io"
	"net"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/macrostep/macrostep/fmi/host"
	"github.com/macrostep/macrostep/fmi/secret"
)

// impostor is a host of macrostep that does what it likes with its connections. It returns its ticket.
func impostor(t testing.TB, serve func(c net.Conn)) string {
	t.Helper()
	certificate, key, err := secret.Certify("host.macrostep")
	if err != nil {
		t.Fatal(err)
	}
	pair, err := tls.X509KeyPair([]byte(certificate), []byte(key))
	if err != nil {
		t.Fatal(err)
	}
	address := accepting(t, func(c net.Conn) { serve(tls.Server(c, &tls.Config{Certificates: []tls.Certificate{pair}})) })
	return ticket(t, host.Ticket{Address: address, Token: "token", Certificate: certificate})
}

// accepting listens at an address and serves its connections until the end of the test.
func accepting(t testing.TB, serve func(c net.Conn)) (address string) {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = l.Close() })
	go func() {
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			go func() {
				defer c.Close()
				serve(c)
			}()
		}
	}()
	return l.Addr().String()
}

// ticket writes a ticket.
func ticket(t testing.TB, k host.Ticket) (path string) {
	t.Helper()
	path = filepath.Join(t.TempDir(), "ticket.json")
	if err := secret.Write(path, k); err != nil {
		t.Fatal(err)
	}
	return path
}

// ticketOf waits for a host and reads its ticket.
func ticketOf(t testing.TB, p *process) (k host.Ticket) {
	t.Helper()
	hostAddress(t, &p.out)
	path := regexp.MustCompile(`(?m)^ticket: (.*)$`).FindStringSubmatch(p.out.String())[1]
	if err := json.Unmarshal(read(t, path), &k); err != nil {
		t.Fatal(err)
	}
	return k
}

// Kinds of frames, see package host.
const frameReply, frameAnswer, frameAlive = 2, 6, 8

// frame is one whose length may be a lie.
func frame(kind, length uint64, content string) []byte {
	b := binary.LittleEndian.AppendUint64(binary.LittleEndian.AppendUint64(nil, kind), length)
	return append(b, content...)
}

func replied(text string) []byte { return frame(frameReply, uint64(len(text)), text) }

// next reads a frame.
func next(c net.Conn) error {
	var head [16]byte
	if _, err := io.ReadFull(c, head[:]); err != nil {
		return err
	}
	_, err := io.CopyN(io.Discard, c, int64(binary.LittleEndian.Uint64(head[8:])))
	return err
}

// trickle sends a byte now and then, until the connection ends.
func trickle(c net.Conn) {
	for {
		if _, err := c.Write([]byte("x")); err != nil {
			return
		}
		time.Sleep(100 * time.Millisecond)
	}
}

const greeting = `{"About":{"id":"X","name":"evil\nmacrostep: run complete\u001b[2J"}}`

// badHosts are what a host may do instead of its work, with a part of the error of a run.
var badHosts = []struct {
	name  string
	serve func(c net.Conn)
	want  string
}{
	{"says nothing", func(c net.Conn) { _, _ = io.Copy(io.Discard, c) }, "could not be reached within 8s"},
	{"trickles its greeting", func(c net.Conn) {
		_, _ = c.Write(frame(frameReply, 60_000, ""))
		trickle(c)
	}, "could not be reached within 8s"},
	{"greets with 5 GiB", func(c net.Conn) {
		_, _ = c.Write(frame(frameReply, 5<<30, ""))
		_, _ = io.Copy(io.Discard, c)
	}, "not a host of this version of macrostep"},
	{"describes nothing", func(c net.Conn) {
		_, _ = c.Write(replied(`{}`))
		_, _ = io.Copy(io.Discard, c)
	}, "not a host of this version of macrostep"},
	{"speaks nonsense", func(c net.Conn) { _, _ = c.Write([]byte(strings.Repeat("nonsense", 100))) }, "not a host of this version of macrostep"},
	{"forges lines", func(c net.Conn) {
		_, _ = c.Write(replied(`{"Error":"no\nmacrostep: run complete\u001b[2J","Remedy":"none\r\n12:00:00 begun"}`))
	}, `no\x0amacrostep: run complete\x1b[2J; none\x0d\x0a12:00:00 begun`},
	{"is silent after its greeting", func(c net.Conn) {
		_, _ = c.Write(replied(greeting))
		_, _ = io.Copy(io.Discard, c)
	}, "it has said nothing for 8s"},
	{"trickles an answer", func(c net.Conn) {
		_, _ = c.Write(replied(greeting))
		for range 2 {
			_ = next(c)
		}
		_, _ = c.Write(frame(frameReply, 900_000, ""))
		trickle(c)
	}, "it has said nothing but"},
	{"answers with 1 GiB", func(c net.Conn) {
		_, _ = c.Write(replied(greeting))
		for range 2 {
			_ = next(c)
		}
		_, _ = c.Write(frame(frameReply, 1<<30, ""))
		_, _ = io.Copy(io.Discard, c)
	}, "an invalid message has come: it has 1073741824 bytes, of at most"},
	{"answers another question", func(c net.Conn) {
		_, _ = c.Write(replied(greeting))
		_, _ = c.Write(frame(frameAnswer, 0, ""))
		_, _ = io.Copy(io.Discard, c)
	}, "an invalid message has come"},
	{"loads nonsense", func(c net.Conn) {
		_, _ = c.Write(replied(greeting))
		for range 2 {
			_ = next(c)
		}
		_, _ = c.Write(replied(`{"Instance":1}`))
		_ = next(c)
		part := frame(1, 8, "nonsense") // of the first instance
		_, _ = c.Write(frame(frameAnswer, uint64(len(part)), string(part)))
		_, _ = io.Copy(io.Discard, c)
	}, "the host has sent an answer that cannot be read"},
}

// A bad host ends a run, and a list of hosts, in the time that hosts have, with the reason and without a forged line.
func TestBadHosts(t *testing.T) {
	t.Parallel()
	path := fmu(t, "mass_force")
	for _, b := range badHosts {
		t.Run(b.name, func(t *testing.T) {
			t.Parallel()
			ticket := impostor(t, b.serve)
			o := run(t, path, "--on", ticket, "--host-timeout", "8")
			if o.code == 0 || !strings.Contains(o.output, b.want) || regexp.MustCompile(`(?m)^(macrostep: run complete|12:00)|\x1b`).MatchString(o.output) {
				t.Errorf("exit code %d\n%s", o.code, o.output)
			}
			if b.name == "loads nonsense" {
				return // a list loads nothing
			}
			listed := call(t, "host", "list", ticket)
			if listed.code == 0 || strings.Count(strings.TrimSpace(listed.output), "\n") > 1 || strings.Contains(listed.output, "\x1b") {
				t.Errorf("exit code %d\n%s", listed.code, listed.output)
			}
		})
	}
}

// One interrupt ends a run that waits for a bad host, long before the time that hosts have.
func TestBadHostsInterrupted(t *testing.T) {
	t.Parallel()
	path := fmu(t, "mass_force")
	for name, serve := range map[string]func(c net.Conn){
		"says nothing": func(c net.Conn) { _, _ = io.Copy(io.Discard, c) },
		"is silent after its greeting": func(c net.Conn) {
			_, _ = c.Write(replied(greeting))
			_, _ = io.Copy(io.Discard, c)
		},
		"trickles an answer": func(c net.Conn) {
			_, _ = c.Write(replied(greeting))
			_ = next(c)
			_, _ = c.Write(frame(frameReply, 900_000, ""))
			trickle(c)
		},
		"does not read": func(c net.Conn) {
			_, _ = c.Write(replied(greeting))
			_, _ = c.Write(replied(`{"Missing":true}`))
			_, _ = c.Write(replied(`{"Missing":true}`))
			time.Sleep(time.Hour)
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			there := make(chan bool, 100)
			ticket := impostor(t, func(c net.Conn) {
				there <- true
				serve(c)
			})
			p := start(t, "run", path, "--on", ticket, "--host-timeout", "86400")
			<-there
			time.Sleep(100 * time.Millisecond) // so that it mostly waits
			p.signal(t, os.Interrupt)
			if code := p.end(); code == 0 || !strings.Contains(p.out.String(), "interrupted") {
				t.Errorf("exit code %d\n%s", code, p.out.String())
			}
		})
	}
	// One that only says that it is at work has the time that hosts have.
	asked := make(chan bool, 10)
	ticket := impostor(t, func(c net.Conn) {
		_, _ = c.Write(replied(greeting))
		for range 2 {
			_ = next(c)
		}
		asked <- true
		for {
			if _, err := c.Write(frame(frameAlive, 0, "")); err != nil {
				return
			}
			time.Sleep(100 * time.Millisecond)
		}
	})
	p := start(t, "run", path, "--on", ticket, "--host-timeout", "4")
	<-asked
	p.signal(t, os.Interrupt)
	if code := p.end(); code == 0 || !strings.Contains(p.out.String(), "interrupted: it has not answered for") {
		t.Errorf("exit code %d\n%s", code, p.out.String())
	}
}

// A client in the middle of an FMU that it sends keeps neither others nor the end of the host waiting, and what it has sent goes with it.
func TestUploadUnderWay(t *testing.T) {
	t.Parallel()
	p := start(t, "host", "--accept", "--listen", "127.0.0.1:0", "--name", "lab\nx")
	k := ticketOf(t, p)
	var c net.Conn
	say := func(kind uint64, text string) {
		if _, err := c.Write(frame(kind, uint64(len(text)), text)); err != nil {
			t.Fatal(err)
		}
	}
	greet := func() {
		var err error
		if c, err = tls.Dial("tcp", k.Address, &tls.Config{InsecureSkipVerify: true}); err != nil {
			t.Fatal(err)
		}
		say(1, `{"Version":"2.10","Patience":30,"Token":"`+k.Token+`"}`)
		_ = next(c)
	}
	greet()
	say(3, `{"Send":{"Name":"a\nb","Hash":"sha256:`+strings.Repeat("0", 64)+`","Size":42949672960}}`)
	say(3, `{"Send":{"Name":"a","Hash":"sha256:`+strings.Repeat("0", 64)+`","Size":1073741824}}`)
	say(4, strings.Repeat("x", 1<<20))
	for range 3 {
		_ = next(c)
	}
	complete(t, fmu(t, "mass_force"), "--on", ticket(t, k), "--stop-time", "1")
	_ = c.Close()
	greet()
	say(3, `{"Send":{"Name":"a","Hash":"sha256:`+strings.Repeat("0", 64)+`","Size":1073741824}}`)
	say(4, strings.Repeat("x", 1<<20))
	for range 2 {
		_ = next(c)
	}
	defer c.Close()
	p.signal(t, os.Interrupt)
	if code := p.end(); code != 0 {
		t.Errorf("exit code %d", code)
	}
	log := p.out.String()
	if !strings.Contains(log, "42949672960") || strings.Contains(log, "\nb") || strings.Contains(log, "\nx") {
		t.Error(log)
	}
}

// cutting is a network that ends each connection after some bytes from the host. It returns a ticket.
func cutting(t testing.TB, k host.Ticket, most int64) string {
	t.Helper()
	target := k.Address
	k.Address = accepting(t, func(c net.Conn) {
		h, err := net.Dial("tcp", target)
		if err != nil {
			return
		}
		defer h.Close()
		go func() { _, _ = io.Copy(h, c) }()
		_, _ = io.CopyN(c, h, most)
	})
	return ticket(t, k)
}

// A network that is cut again and again changes neither a run nor a study.
func TestHostCut(t *testing.T) {
	t.Parallel()
	p := start(t, "host", "--accept", "--listen", "127.0.0.1:0")
	over := cutting(t, ticketOf(t, p), 300_000)
	path := system(t, "quarter-car-a")
	local, cut := complete(t, path, "--stop-time", "5"), complete(t, path, "--stop-time", "5", "--on", over)
	if local.table(t) != cut.table(t) || !strings.Contains(string(read(t, strings.TrimSuffix(cut.results, "csv")+"json")), `"restarts"`) {
		t.Errorf("the results differ, or nothing was cut\n%s", cut.output)
	}
	rows := func(on string) (out []string) {
		dir := t.TempDir()
		plan := "system: " + path + "\nrun: {stop-time: 3" + on + "}\nvary: {wheel.k_w: [150000, 200000, 250000]}\ncollect: {peak: maximum(chassis.v_c)}\n"
		if err := os.WriteFile(filepath.Join(dir, "plan.yaml"), []byte(plan), 0o600); err != nil {
			t.Fatal(err)
		}
		o := call(t, "study", filepath.Join(dir, "plan.yaml"), "--output", filepath.Join(dir, "out"), "--engines", "1")
		if o.code != 0 {
			t.Fatalf("exit code %d\n%s", o.code, o.output)
		}
		for line := range strings.Lines(string(read(t, filepath.Join(dir, "out", "results.csv")))) {
			out = append(out, strings.Join(strings.Split(line, ",")[:4], ","))
		}
		return out
	}
	if here, there := rows(""), rows(", on: '*="+over+"'"); len(here) != 4 || strings.Join(here, "\n") != strings.Join(there, "\n") {
		t.Errorf("local %q, over the network %q", here, there)
	}
}
