package host

import (
	"context"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"strconv"
	"strings"

	"github.com/macrostep/macrostep/fmi/diag"
	"github.com/macrostep/macrostep/fmi/secret"
)

// Ticket is what a run needs to use a host: the content of a file of mode 0600, which is secret.
type Ticket struct {
	Address     string `json:"address"`     // HOST:PORT
	Token       string `json:"token"`       // of the run
	Certificate string `json:"certificate"` // PEM, of the host
}

// SecretsFile is the name of the file with the secrets of hosts, in the folder of their tickets.
const SecretsFile = "host.key.json"

// TicketDir returns the folder of the user for tickets and secrets, which need not exist yet. Nobody else has rights to it.
func TicketDir() (string, error) {
	dir, err := os.UserConfigDir()
	if err != nil {
		return "", fmt.Errorf("there is no folder for the tickets and secrets of hosts: %w; set HOME or XDG_CONFIG_HOME (on Windows AppData) "+
			"to a folder of yours", err)
	}
	dir = filepath.Join(dir, "macrostep", "hosts")
	return dir, secret.Folder(dir)
}

// secrets are those of a host, which it keeps so that tickets stay valid.
type secrets struct {
	Token       string `json:"token"`
	Certificate string `json:"certificate"` // PEM
	Key         string `json:"key"`         // PEM
}

// certifiedName is the name in certificates of hosts. Runs know a host by its certificate, under whatever name they reach it.
const certifiedName = "host.macrostep"

// Listen opens a port for Server.Serve. The secrets are those in dir, or new ones, and dir then has the ticket of the
// host, whose path is returned.
func Listen(address, dir string) (l net.Listener, certificate tls.Certificate, token, ticket string, err error) {
	s, certificate, err := ownSecrets(dir)
	if err != nil {
		return nil, certificate, "", "", err
	}
	if l, err = net.Listen("tcp", address); err != nil {
		return nil, certificate, "", "", fmt.Errorf("%w; give --listen [HOST]:PORT with a free port, or port 0 for any", err)
	}
	_, port, err := net.SplitHostPort(l.Addr().String())
	if err != nil {
		return nil, certificate, "", "", errors.Join(err, l.Close())
	}
	reached := net.JoinHostPort(secret.Reached(address), port)
	ticket = ticketPath(dir, reached)
	if err := secret.Write(ticket, Ticket{Address: reached, Token: s.Token, Certificate: s.Certificate}); err != nil {
		return nil, certificate, "", "", errors.Join(err, l.Close())
	}
	return l, certificate, s.Token, ticket, nil
}

// ticketPath returns the path of the ticket of an address.
func ticketPath(dir, address string) string {
	name := strings.Map(func(r rune) rune {
		if strings.ContainsRune(`:/\[]`, r) {
			return '_'
		}
		return r
	}, address)
	return filepath.Join(dir, name+".json")
}

// CheckAddress returns an error for a URL, or an address with a user, which no host has.
func CheckAddress(where string) error {
	user := strings.Contains(where, "@") && !strings.ContainsAny(where, `/\`) && filepath.Ext(where) != ".json"
	if !user && !strings.Contains(where, "://") {
		return nil
	}
	return fmt.Errorf("%s: a host of FMUs has no URL; start macrostep host --listen [HOST]:PORT on its machine, copy the ticket "+
		"whose name it prints to this one, and give that file in place of the URL", secret.Plain(where))
}

// readTicket reads the ticket of a host: its address, whose ticket is in dir ("" = TicketDir), or the path of a ticket.
func readTicket(where, dir string) (t Ticket, config *tls.Config, err error) {
	if err := CheckAddress(where); err != nil {
		return t, nil, err
	}
	path := where
	if _, _, err := net.SplitHostPort(where); err == nil && filepath.Ext(where) != ".json" {
		if dir == "" {
			if dir, err = TicketDir(); err != nil {
				return t, nil, fmt.Errorf("%w, or give the ticket of host %s in place of its address", err, diag.Line(where))
			}
		}
		path = ticketPath(dir, where)
	}
	roots := x509.NewCertPool()
	err = secret.Read(path, &t)
	switch {
	case errors.Is(err, os.ErrNotExist):
		return t, nil, fmt.Errorf("there is no ticket for host %s (%s); start macrostep host there, and give the file that it names, "+
			"or a copy of it on this machine, in place of the address", diag.Line(where), diag.Line(path))
	case errors.Is(err, secret.ErrDamaged), err == nil && !(isAddress(t.Address) && roots.AppendCertsFromPEM([]byte(t.Certificate))):
		return t, nil, fmt.Errorf("%s is not the ticket of a host, which macrostep host writes", diag.Line(path))
	case err != nil:
		return t, nil, err
	}
	return t, &tls.Config{MinVersion: tls.VersionTLS13, RootCAs: roots, ServerName: certifiedName}, nil
}

// isAddress reports whether a text is HOST:PORT, and harmless in messages.
func isAddress(text string) bool {
	host, port, err := net.SplitHostPort(text)
	_, failed := strconv.ParseUint(port, 10, 16)
	return err == nil && failed == nil && host != "" && diag.Line(text) == text
}

// dialTLS connects to a host.
func dialTLS(ctx context.Context, address string, config *tls.Config) (net.Conn, error) {
	c, err := (&net.Dialer{}).DialContext(ctx, "tcp", address)
	if err != nil {
		return nil, err
	}
	secure := tls.Client(prepare(c), config)
	err = secure.HandshakeContext(ctx)
	var unknown x509.UnknownAuthorityError
	if err != nil {
		_ = c.Close()
	}
	switch {
	case errors.As(err, new(tls.RecordHeaderError)):
		return nil, &RefusedError{Host: address, Reason: "the program that listens there is not a host of macrostep",
			Remedy: "give the address that macrostep host prints"}
	case errors.As(err, &unknown):
		return nil, &RefusedError{Host: address, Reason: "its certificate is not that of the ticket",
			Remedy: "another program listens there, or the host has new secrets: copy its ticket to this machine again"}
	case err != nil:
		return nil, err
	}
	return secure, nil
}

// ownSecrets reads the secrets of a host, or makes new ones.
func ownSecrets(dir string) (s secrets, pair tls.Certificate, err error) {
	if err := secret.Folder(dir); err != nil {
		return s, pair, err
	}
	path := filepath.Join(dir, SecretsFile)
	if err = secret.Read(path, &s); errors.Is(err, os.ErrNotExist) {
		s.Token = rand.Text()
		if s.Certificate, s.Key, err = secret.Certify(certifiedName); err == nil {
			err = secret.Write(path, s)
		}
	}
	if err == nil {
		if pair, err = tls.X509KeyPair([]byte(s.Certificate), []byte(s.Key)); err != nil || len(s.Token) < 16 {
			err = secret.ErrDamaged
		}
	}
	if errors.Is(err, secret.ErrDamaged) {
		err = fmt.Errorf("%s is damaged; remove it, and copy the new ticket to the machines that use this host", diag.Line(path))
	}
	return s, pair, err
}
