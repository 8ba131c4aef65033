package cluster

import (
	"crypto/rand"
	"crypto/tls"
	"encoding/base64"
	"errors"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"strconv"
	"time"

	"github.com/nats-io/nats-server/v2/server"
	"github.com/nats-io/nats.go"
	"github.com/nats-io/nkeys"

	"github.com/macrostep/macrostep/fmi/secret"
	"github.com/macrostep/macrostep/master/simulate"
	"github.com/macrostep/macrostep/master/study"
)

// Ticket is what a worker needs to join: it is the content of a file of mode 0600.
type Ticket struct {
	URL     string `json:"url"`
	Version string `json:"version"`   // of macrostep
	Study   string `json:"study"`     // its identity
	Index   string `json:"index"`     // hash of the list of its files
	Seed    string `json:"nkey_seed"` // private key of all workers
	CA      string `json:"ca"`        // PEM of the certificate that the server proves itself by
}

// keys are what a study keeps to be the same for its workers after it was interrupted: a file of mode 0600.
type keys struct {
	Study       string `json:"study"`       // its identity
	Seal        []byte `json:"seal"`        // key of the seals of its variants
	Seed        string `json:"nkey_seed"`   // private key of all workers
	Key         string `json:"key"`         // PEM, of the certificate
	Certificate string `json:"certificate"` // PEM

	resumed bool // they are those of an earlier process
}

// keysOf returns the keys of a study, which it makes first if there are none.
func keysOf(folder string) (*keys, error) {
	path := filepath.Join(folder, study.KeysFile)
	k := &keys{resumed: true}
	err := secret.Read(path, k)
	if err == nil && !k.whole() {
		err = fmt.Errorf("%s: %w", path, secret.ErrDamaged)
	}
	switch {
	case errors.Is(err, secret.ErrDamaged):
		return nil, fmt.Errorf("%w; remove the file, and start workers again with the new %s", err, study.TicketFile)
	case !errors.Is(err, os.ErrNotExist):
		return k, err
	}
	k = &keys{Study: random(6), Seal: []byte(random(32))}
	user, err := nkeys.CreateUser()
	if err != nil {
		return nil, err
	}
	seed, err := user.Seed()
	if err != nil {
		return nil, err
	}
	k.Seed = string(seed)
	if k.Certificate, k.Key, err = secret.Certify(certifiedName); err != nil {
		return nil, err
	}
	return k, secret.Write(path, k)
}

// whole reports whether all keys are there and can be used.
func (k *keys) whole() bool {
	_, pair := tls.X509KeyPair([]byte(k.Certificate), []byte(k.Key))
	_, seed := nkeys.FromSeed([]byte(k.Seed))
	return tokens.MatchString(k.Study) && len(k.Seal) > 0 && pair == nil && seed == nil
}

// random returns so many random bytes as a text.
func random(n int) string {
	b := make([]byte, n)
	_, _ = rand.Read(b) // never fails
	return fmt.Sprintf("%x", b)
}

const certifiedName = "study.macrostep"

// Serve starts a server in this process, at HOST:PORT, through which workers on other machines reach a queue. It writes their
// ticket into the folder of the study. Workers of an earlier server for the folder find the new one if the address is the same.
func Serve(q *Queue, f *study.Folder, address string) (*Coordinator, error) {
	k, err := keysOf(f.Path)
	if err != nil {
		return nil, err
	}
	list, place, err := indexOf(f.Path)
	if err != nil {
		return nil, err
	}
	mine, err := nkeys.CreateUser()
	if err != nil {
		return nil, err
	}
	s, err := k.start(address, mine)
	if err != nil {
		return nil, err
	}
	c := coordinate(q, f, k, list, place)
	public, err := mine.PublicKey()
	if err == nil {
		c.link = &Link{server: s, name: public, log: q.log}
		err = c.link.connect("", nats.InProcessServer(s), nats.Nkey(public, mine.Sign))
	}
	if err == nil {
		err = c.listen()
	}
	if err == nil {
		port := strconv.Itoa(s.Addr().(*net.TCPAddr).Port)
		err = secret.Write(filepath.Join(f.Path, study.TicketFile), Ticket{
			URL: "tls://" + net.JoinHostPort(secret.Reached(address), port), Version: simulate.Version(), Study: k.Study, Index: c.index,
			Seed: k.Seed, CA: k.Certificate,
		})
	}
	if err != nil {
		s.Shutdown()
		return nil, err
	}
	return c, nil
}

// startTime is how long a server may take to start.
const startTime = 20 * time.Second

// start starts a server. coordinator is the key of its user who answers workers.
func (k *keys) start(address string, coordinator nkeys.KeyPair) (*server.Server, error) {
	host, port, err := net.SplitHostPort(address)
	if err != nil {
		return nil, err
	}
	o := &server.Options{ServerName: "macrostep", Host: host, NoSigs: true, NoLog: true, AlwaysEnableNonce: true, TLS: true, TLSTimeout: 10}
	if o.Port, err = strconv.Atoi(port); err != nil {
		return nil, fmt.Errorf("%q is not the number of a port", port)
	}
	if o.Port == 0 {
		o.Port = server.RANDOM_PORT
	}
	pair, err := tls.X509KeyPair([]byte(k.Certificate), []byte(k.Key))
	if err != nil {
		return nil, err
	}
	o.TLSConfig = &tls.Config{MinVersion: tls.VersionTLS13, Certificates: []tls.Certificate{pair}}
	d := &door{}
	if d.coordinator, err = coordinator.PublicKey(); err != nil {
		return nil, err
	}
	if d.workers, err = nkeys.FromSeed([]byte(k.Seed)); err != nil {
		return nil, err
	}
	o.CustomClientAuthentication = d
	s, err := server.NewServer(o)
	if err != nil {
		return nil, fmt.Errorf("the server of the study does not start: %w", err)
	}
	s.Start()
	if !s.ReadyForConnections(startTime) {
		s.Shutdown()
		return nil, fmt.Errorf("the server of the study does not start within %v; is the address %s in use?", startTime, address)
	}
	return s, nil
}

// CheckAddress returns an error if a server cannot listen to HOST:PORT.
func CheckAddress(address string) error {
	l, err := net.Listen("tcp", address)
	if err != nil {
		return fmt.Errorf("%w; give [HOST]:PORT with a free port, or port 0 for any", err)
	}
	return l.Close()
}

// door decides who may connect to a server, and for what. Each worker has a key of its own, which it makes, and which is
// signed with the key in the ticket.
type door struct {
	coordinator string // public key
	workers     nkeys.KeyPair
}

// Check implements server.Authentication.
func (d *door) Check(c server.ClientAuthentication) bool {
	o := c.GetOpts()
	user, err := nkeys.FromPublicKey(o.Nkey)
	if err != nil || !signed(user, c.GetNonce(), o.Sig) {
		return false
	}
	rights := &server.Permissions{
		Publish:   &server.SubjectPermission{Allow: []string{subjects + o.Nkey + ".>"}},
		Subscribe: &server.SubjectPermission{Allow: []string{inboxes + o.Nkey + ".>"}},
	}
	switch {
	case o.Nkey == d.coordinator:
		rights.Publish.Allow, rights.Subscribe.Allow = []string{inboxes + ">"}, []string{subjects + ">"}
	case !signed(d.workers, []byte(o.Nkey), o.Token):
		return false
	}
	c.RegisterUser(&server.User{Username: o.Nkey, Permissions: rights})
	return true
}

// signed reports whether a text has been signed with a key.
func signed(by nkeys.KeyPair, text []byte, signature string) bool {
	sig, err := base64.RawURLEncoding.DecodeString(signature)
	return err == nil && by.Verify(text, sig) == nil
}
