package cluster

import (
	"cmp"
	"context"
	"crypto/tls"
	"crypto/x509"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"net/url"
	"os"
	"strings"
	"sync"
	"time"

	"github.com/nats-io/nats-server/v2/server"
	"github.com/nats-io/nats.go"
	"github.com/nats-io/nkeys"

	"github.com/macrostep/macrostep/fmi/secret"
	"github.com/macrostep/macrostep/master/simulate"
	"github.com/macrostep/macrostep/master/study"
)

// Link is a connection to a server.
type Link struct {
	conn   *nats.Conn
	server *server.Server // in this process; nil = elsewhere
	url    string         // without user and password
	name   string         // of the user, in subjects
	log    func(text string)
	most   int // bytes of a file in a message

	study, index string // of a ticket

	mu    sync.Mutex
	lost  chan struct{} // closed when the present connection ends
	waits bool          // for a connection, and the user knows
}

// Credentials identify the client. The zero value is for servers without authentication, or if the URL or the environment has
// a user.
type Credentials struct {
	File string // a Ticket, a .creds file, or the seed of an NKey
	CA   string // PEM file of the authority for the server's certificate; "" = those of the system
}

// The environment of the user and password for a server, as other programs of NATS know it.
const (
	userVariable     = "NATS_USER"
	passwordVariable = "NATS_PASSWORD"
)

// Connect connects to a server. address is its URL, or several with commas; "" if the credentials are a ticket. log takes
// messages about the connection.
func Connect(address string, c Credentials, log func(text string)) (*Link, error) {
	l := &Link{url: secret.Plain(address), log: log}
	options, err := l.identify(&address, c)
	if err != nil {
		return nil, err
	}
	if address == "" {
		return nil, errors.New("the URL of the server is missing")
	}
	if c.CA != "" {
		options = append(options, nats.RootCAs(c.CA))
	}
	return l, l.connect(address, options...)
}

// identify returns the options that say who the client is, and sets its name.
func (l *Link) identify(address *string, c Credentials) ([]nats.Option, error) {
	if c.File != "" {
		data, err := os.ReadFile(c.File)
		var t *Ticket
		if err == nil && json.Unmarshal(data, new(Ticket)) == nil {
			err = secret.Read(c.File, &t)
		}
		if err != nil {
			return nil, err
		}
		options, err := l.credentials(address, c.File, data, t)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", c.File, err)
		}
		return options, nil
	}
	user, err := userOf(*address)
	if err != nil {
		return nil, err
	}
	var options []nats.Option
	if user == "" && os.Getenv(userVariable) != "" && !strings.Contains(*address, "@") {
		user = os.Getenv(userVariable)
		options = append(options, nats.UserInfo(user, os.Getenv(passwordVariable)))
	}
	if user != "" && !tokens.MatchString(user) {
		return nil, errors.New("the name of the user must have letters, digits, _ and - only, because subjects contain it")
	}
	l.name = cmp.Or(user, random(12))
	return options, nil
}

// userOf returns the user in the first URL that has one with a password.
func userOf(address string) (user string, err error) {
	for part := range strings.SplitSeq(address, ",") {
		if !strings.Contains(part, "://") {
			part = "nats://" + part
		}
		u, err := url.Parse(strings.TrimSpace(part))
		if err != nil { // its text would have the password
			return "", fmt.Errorf("%s is not the URL of a server; write special characters of a password as %%XX", secret.Plain(address))
		}
		if _, ok := u.User.Password(); ok && user == "" {
			user = u.User.Username()
		}
	}
	return user, nil
}

// credentials returns the options of a file of credentials, which is a ticket unless that is nil.
func (l *Link) credentials(address *string, path string, data []byte, t *Ticket) ([]nats.Option, error) {
	if t != nil {
		return l.ticket(address, t)
	}
	text := strings.TrimSpace(string(data))
	jwt := strings.Contains(text, "BEGIN NATS USER JWT")
	if !jwt && !strings.HasPrefix(text, "SU") {
		return nil, errors.New("this is neither the join.json of a study, nor a .creds file, nor the seed of an NKey")
	}
	key, err := nkeys.ParseDecoratedUserNKey(data)
	if err != nil {
		return nil, err
	}
	if l.name, err = key.PublicKey(); err != nil {
		return nil, err
	}
	if jwt {
		return []nats.Option{nats.UserCredentials(path)}, nil
	}
	return []nats.Option{nats.Nkey(l.name, key.Sign)}, nil
}

// ticket makes a key for this worker, signed with that of all.
func (l *Link) ticket(address *string, t *Ticket) ([]nats.Option, error) {
	if own := simulate.Version(); t.Version != own {
		return nil, fmt.Errorf("the study runs with macrostep %s, and this is %s; all machines need the same version",
			cmp.Or(t.Version, "of an earlier version"), own)
	}
	all, err := nkeys.FromSeed([]byte(t.Seed))
	if err != nil {
		return nil, err
	}
	mine, err := nkeys.CreateUser()
	if err != nil {
		return nil, err
	}
	if l.name, err = mine.PublicKey(); err != nil {
		return nil, err
	}
	proof, err := all.Sign([]byte(l.name))
	if err != nil {
		return nil, err
	}
	roots := x509.NewCertPool()
	if !roots.AppendCertsFromPEM([]byte(t.CA)) {
		return nil, errors.New("the certificate cannot be read")
	}
	*address = cmp.Or(*address, t.URL)
	l.url, l.study, l.index = secret.Plain(*address), t.Study, t.Index
	return []nats.Option{
		nats.Secure(&tls.Config{MinVersion: tls.VersionTLS13, RootCAs: roots, ServerName: certifiedName}),
		nats.Nkey(l.name, mine.Sign), nats.Token(base64.RawURLEncoding.EncodeToString(proof)),
	}, nil
}

func (l *Link) connect(address string, options ...nats.Option) (err error) {
	l.lost = make(chan struct{})
	options = append(options, nats.Name("macrostep"), nats.MaxReconnects(-1), nats.ReconnectWait(500*time.Millisecond), nats.Timeout(10*time.Second),
		nats.CustomInboxPrefix(inboxes+l.name), nats.ReconnectBufSize(-1), nats.IgnoreAuthErrorAbort(), nats.PermissionErrOnSubscribe(true),
		nats.PingInterval(5*time.Second), nats.MaxPingsOutstanding(2),
		nats.DisconnectErrHandler(func(c *nats.Conn, err error) {
			l.mu.Lock()
			close(l.lost)
			l.lost = make(chan struct{})
			l.mu.Unlock()
			time.AfterFunc(lostTime, func() { l.report(c, err) })
		}),
		nats.ReconnectHandler(func(c *nats.Conn) { l.report(c, nil) }),
		nats.ErrorHandler(func(*nats.Conn, *nats.Subscription, error) {})) // see refusal
	if l.conn, err = nats.Connect(address, options...); err != nil {
		return fmt.Errorf("%s: %w%s", l.url, err, remedy(err))
	}
	l.most = int(min(largestPiece, l.conn.MaxPayload()/2))
	return nil
}

// lostTime is how long a connection may be lost until the user gets to know.
const lostTime = 2 * time.Second

// report logs a connection that stays lost, and later that it is back.
func (l *Link) report(c *nats.Conn, lost error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	switch {
	case lost != nil && c.IsReconnecting() && !l.waits:
		l.waits = true
		l.log(fmt.Sprintf("the connection to %s is lost (%v); trying again", l.url, lost))
	case lost == nil && l.waits:
		l.waits = false
		l.log("connected to " + l.url + " again")
	}
}

// ask makes a request. Its answer is lost with the connection.
func (l *Link) ask(ctx context.Context, subject string, message []byte) (*nats.Msg, error) {
	ctx, cancel := context.WithTimeoutCause(ctx, askTime, errSilent)
	defer cancel()
	l.mu.Lock()
	lost := l.lost
	l.mu.Unlock()
	go func() {
		select {
		case <-lost:
			cancel()
		case <-ctx.Done():
		}
	}()
	m, err := l.conn.RequestWithContext(ctx, subject, message)
	if errors.Is(err, context.DeadlineExceeded) {
		err = context.Cause(ctx)
	}
	if errors.Is(err, context.Canceled) {
		err = nats.ErrDisconnected
	}
	return m, err
}

var errSilent = fmt.Errorf("no answer within %v", askTime)

// refusal returns the error if the server has refused what its user needs.
func (l *Link) refusal() error {
	err := l.conn.LastError()
	if !errors.Is(err, nats.ErrPermissionViolation) {
		return nil
	}
	return fmt.Errorf("%s: %w; the section \"A NATS server of your own\" in macrostep help studies lists the rights that users need (this one is %s)",
		l.url, err, l.name)
}

// remedy returns what helps when a connection fails.
func remedy(err error) string {
	var unknown x509.UnknownAuthorityError
	var name x509.HostnameError
	switch {
	case errors.Is(err, nats.ErrAuthorization), errors.Is(err, nats.ErrAuthExpired):
		return "; the user is not one of this server: give --credentials the present join.json of the study, or the file of your cluster, " +
			"or check user and password (with special characters as %XX)"
	case errors.As(err, &unknown), errors.As(err, &name), strings.Contains(err.Error(), "failed to verify certificate"):
		return "; its certificate is not known here: give --credentials the present join.json of the study, or --ca"
	case errors.Is(err, nats.ErrNoServers):
		return "; is the server running, and does a firewall let the port through?"
	}
	return ""
}

// Close ends the connection, and the server if it is in this process.
func (l *Link) Close() error {
	if l.conn != nil {
		_ = l.conn.FlushTimeout(time.Second) // the last answers; the connection may be lost
		l.conn.Close()
	}
	if l.server != nil {
		l.server.Shutdown()
		l.server.WaitForShutdown()
	}
	return nil
}

// Offer lets workers on other machines reach a queue through a server of the user's.
func Offer(q *Queue, f *study.Folder, l *Link) (*Coordinator, error) {
	k, err := keysOf(f.Path)
	if err != nil {
		return nil, err
	}
	list, place, err := indexOf(f.Path)
	if err != nil {
		return nil, err
	}
	c := coordinate(q, f, k, list, place)
	c.link = l
	return c, c.listen()
}
