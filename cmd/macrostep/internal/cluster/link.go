package cluster

import (
	"context"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/nats-io/nats-server/v2/server"
	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
	"github.com/nats-io/nkeys"

	"github.com/macrostep/macrostep/fmi/secret"
)

// Link is a connection to a server.
type Link struct {
	conn   *nats.Conn
	js     jetstream.JetStream
	server *server.Server // in this process; nil = elsewhere
}

// Ticket is what a worker needs to join: it is the content of a file of mode 0600.
type Ticket struct {
	URL  string `json:"url"`
	Seed string `json:"nkey_seed"` // private key of the user
	CA   string `json:"ca"`        // PEM of the certificate that the server proves itself by
}

// ServerOptions are the options of Serve.
type ServerOptions struct {
	Store  string // folder for streams
	Listen string // HOST:PORT for workers; "" = no port is opened
	Ticket string // file that is written for workers, with Listen
}

// Serve starts a server in this process and connects to it. Workers of an earlier server for the same
// ticket find the new one at the same address, with the same key and certificate.
func Serve(o ServerOptions) (*Link, error) {
	own, err := ownSecrets(&o)
	if err != nil {
		return nil, err
	}
	user, err := nkeys.FromSeed([]byte(own.Seed))
	if err != nil {
		return nil, err
	}
	public, err := user.PublicKey()
	if err != nil {
		return nil, err
	}
	options := &server.Options{
		ServerName: "macrostep", DontListen: true, JetStream: true, StoreDir: o.Store, NoSigs: true, NoLog: true,
		Nkeys: []*server.NkeyUser{{Nkey: public}}, DisableJetStreamBanner: true,
	}
	if o.Listen != "" {
		if err := own.listen(options, o.Listen); err != nil {
			return nil, err
		}
	}
	s, err := server.NewServer(options)
	if err != nil {
		return nil, fmt.Errorf("the server of the study does not start: %w", err)
	}
	s.Start()
	if !s.ReadyForConnections(startTime) {
		s.Shutdown()
		return nil, fmt.Errorf("the server of the study does not start within %v; is the address %s in use, or %s full?", startTime, o.Listen, o.Store)
	}
	l := &Link{server: s}
	if o.Listen != "" {
		port := strconv.Itoa(s.Addr().(*net.TCPAddr).Port)
		t := Ticket{URL: "tls://" + net.JoinHostPort(secret.Reached(o.Listen), port), Seed: own.Seed, CA: own.Certificate}
		if err := secret.Write(o.Ticket, t); err != nil {
			return nil, errors.Join(err, l.Close())
		}
	}
	if err := l.connect("", nats.InProcessServer(s), nats.Nkey(public, user.Sign)); err != nil {
		return nil, errors.Join(err, l.Close())
	}
	return l, nil
}

// secrets are those of a server.
type secrets struct {
	Seed        string `json:"nkey_seed"`   // private key of the user
	Key         string `json:"key"`         // PEM, of the certificate
	Certificate string `json:"certificate"` // PEM
}

// ownSecrets returns the secrets of an earlier server for the same ticket, or new ones.
func ownSecrets(o *ServerOptions) (*secrets, error) {
	path := o.Ticket + ".server"
	var s secrets
	if data, err := os.ReadFile(path); o.Listen != "" && err == nil && json.Unmarshal(data, &s) == nil {
		return &s, nil
	}
	user, err := nkeys.CreateUser()
	if err != nil {
		return nil, err
	}
	seed, err := user.Seed()
	if err != nil {
		return nil, err
	}
	s.Seed = string(seed)
	if o.Listen == "" {
		return &s, nil
	}
	if s.Certificate, s.Key, err = secret.Certify(certifiedName); err != nil {
		return nil, err
	}
	return &s, secret.Write(path, s)
}

// startTime is how long a server may take to start.
const startTime = 20 * time.Second

// CheckAddress returns an error if a server cannot listen to HOST:PORT.
func CheckAddress(address string) error {
	l, err := net.Listen("tcp", address)
	if err != nil {
		return fmt.Errorf("%w; give [HOST]:PORT with a free port, or port 0 for any", err)
	}
	return l.Close()
}

// listen adds an address with TLS to the options of a server.
func (s *secrets) listen(o *server.Options, address string) error {
	host, port, err := net.SplitHostPort(address)
	if err != nil {
		return err
	}
	if o.Port, err = strconv.Atoi(port); err != nil {
		return fmt.Errorf("%q is not the number of a port", port)
	}
	if o.Port == 0 {
		o.Port = server.RANDOM_PORT
	}
	o.Host, o.DontListen = host, false
	pair, err := tls.X509KeyPair([]byte(s.Certificate), []byte(s.Key))
	if err != nil {
		return err
	}
	o.TLS, o.TLSTimeout = true, 10
	o.TLSConfig = &tls.Config{MinVersion: tls.VersionTLS13, Certificates: []tls.Certificate{pair}}
	return nil
}

const certifiedName = "study.macrostep"

// Credentials identify the client. The zero value is for servers without authentication, or if the URL holds a
// user or token.
type Credentials struct {
	File string // a Ticket, a .creds file, or the seed of an NKey
	CA   string // PEM file of the authority for the server's certificate; "" = those of the system
}

// Connect connects to a server. url may be "" if the credentials are a ticket.
func Connect(url string, c Credentials) (*Link, error) {
	var options []nats.Option
	if c.CA != "" {
		options = append(options, nats.RootCAs(c.CA))
	}
	if c.File != "" {
		more, from, err := c.options()
		if err != nil {
			return nil, err
		}
		options = append(options, more...)
		if url == "" {
			url = from
		}
	}
	if url == "" {
		return nil, errors.New("the URL of the server is missing")
	}
	l := &Link{}
	return l, l.connect(url, options...)
}

// options reads the file of credentials, and returns the URL in a ticket.
func (c *Credentials) options() (_ []nats.Option, url string, err error) {
	data, err := os.ReadFile(c.File)
	if err != nil {
		return nil, "", err
	}
	text := strings.TrimSpace(string(data))
	var t Ticket
	switch {
	case json.Unmarshal(data, &t) == nil:
		key, err := nkeys.FromSeed([]byte(t.Seed))
		if err != nil {
			return nil, "", fmt.Errorf("%s: %w", c.File, err)
		}
		public, err := key.PublicKey()
		if err != nil {
			return nil, "", fmt.Errorf("%s: %w", c.File, err)
		}
		roots := x509.NewCertPool()
		if !roots.AppendCertsFromPEM([]byte(t.CA)) {
			return nil, "", fmt.Errorf("%s: the certificate cannot be read", c.File)
		}
		secure := nats.Secure(&tls.Config{MinVersion: tls.VersionTLS13, RootCAs: roots, ServerName: certifiedName})
		return []nats.Option{secure, nats.Nkey(public, key.Sign)}, t.URL, nil
	case strings.HasPrefix(text, "SU"):
		o, err := nats.NkeyOptionFromSeed(c.File)
		if err != nil {
			return nil, "", fmt.Errorf("%s: %w", c.File, err)
		}
		return []nats.Option{o}, "", nil
	case strings.Contains(text, "BEGIN NATS USER JWT"):
		return []nats.Option{nats.UserCredentials(c.File)}, "", nil
	}
	return nil, "", fmt.Errorf("%s is neither the join.json of a study, nor a .creds file, nor the seed of an NKey", c.File)
}

func (l *Link) connect(url string, options ...nats.Option) error {
	options = append(options, nats.Name("macrostep"), nats.MaxReconnects(-1), nats.ReconnectWait(500*time.Millisecond), nats.Timeout(10*time.Second))
	conn, err := nats.Connect(url, options...)
	if err != nil {
		return fmt.Errorf("%s: %w%s", url, err, remedy(err))
	}
	l.conn = conn
	l.js, err = jetstream.New(conn)
	if err != nil {
		conn.Close()
	}
	return err
}

// remedy returns what helps when a connection fails.
func remedy(err error) string {
	var unknown x509.UnknownAuthorityError
	var name x509.HostnameError
	switch {
	case errors.Is(err, nats.ErrAuthorization), errors.Is(err, nats.ErrAuthExpired):
		return "; the credentials are not those of this server: give --credentials the join.json of the study, or the file of your cluster"
	case errors.As(err, &unknown), errors.As(err, &name), strings.Contains(err.Error(), "failed to verify certificate"):
		return "; its certificate is not known here: give --credentials the join.json of the study, or --ca"
	case errors.Is(err, nats.ErrNoServers):
		return "; is the server running, and does a firewall let the port through?"
	}
	return ""
}

// Close ends the connection, and the server if it is in this process.
func (l *Link) Close() error {
	if l.conn != nil {
		l.conn.Close()
	}
	if l.server != nil {
		l.server.Shutdown()
		l.server.WaitForShutdown()
	}
	return nil
}

// names of a study in JetStream.
type names string

func newIdentity() string {
	b := make([]byte, 6)
	_, _ = rand.Read(b) // never fails
	return fmt.Sprintf("%x", b)
}

const (
	streamPrefix = "MACROSTEP-"
	tasksSuffix  = "-TASKS"
	consumer     = "engines"
	indexObject  = "index"
)

func (n names) tasks() string  { return streamPrefix + string(n) + tasksSuffix }
func (n names) rows() string   { return streamPrefix + string(n) + "-ROWS" }
func (n names) bucket() string { return "macrostep-" + string(n) }
func (n names) subject(kind string, id int) string {
	return "macrostep." + string(n) + "." + kind + "." + strconv.Itoa(id)
}
func (n names) all(kind string) string { return "macrostep." + string(n) + "." + kind + ".*" }
func (n names) end() string            { return "macrostep." + string(n) + ".end" }

// Studies lists the identities of the studies on a server.
func (l *Link) Studies(ctx context.Context) ([]string, error) {
	var out []string
	list := l.js.StreamNames(ctx)
	for name := range list.Name() {
		if id, ok := strings.CutPrefix(name, streamPrefix); ok && strings.HasSuffix(id, tasksSuffix) {
			out = append(out, strings.TrimSuffix(id, tasksSuffix))
		}
	}
	slices.Sort(out)
	return out, list.Err()
}

// identity returns that of the study in a folder, which it makes first if there is none.
func identity(folder string) (string, error) {
	path := filepath.Join(folder, "identity")
	data, err := os.ReadFile(path)
	if errors.Is(err, os.ErrNotExist) {
		id := newIdentity()
		return id, os.WriteFile(path, []byte(id+"\n"), 0o666)
	}
	return strings.TrimSpace(string(data)), err
}
