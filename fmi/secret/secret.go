// Package secret makes and stores what programs on different machines know each other by.
package secret

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/json"
	"encoding/pem"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"math/big"
	"net"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"time"

	"github.com/macrostep/macrostep/fmi/diag"
)

// Certify makes a certificate for a server, and its private key, both in PEM. Clients that know the certificate know the
// server by it, under whatever address they reach it, if they expect the name.
func Certify(name string) (certificate, key string, err error) {
	k, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return "", "", err
	}
	private, err := x509.MarshalPKCS8PrivateKey(k)
	if err != nil {
		return "", "", err
	}
	serial, err := rand.Int(rand.Reader, new(big.Int).Lsh(big.NewInt(1), 127))
	if err != nil {
		return "", "", err
	}
	now := time.Now()
	template := &x509.Certificate{
		SerialNumber: serial, Subject: pkix.Name{CommonName: name},
		NotBefore: now.Add(-24 * time.Hour), NotAfter: now.AddDate(10, 0, 0),
		KeyUsage: x509.KeyUsageDigitalSignature | x509.KeyUsageCertSign, ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth},
		IsCA: true, BasicConstraintsValid: true, DNSNames: []string{name},
	}
	der, err := x509.CreateCertificate(rand.Reader, template, template, &k.PublicKey, k)
	if err != nil {
		return "", "", err
	}
	certificate = string(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der}))
	return certificate, string(pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: private})), nil
}

// Write writes a document as JSON that only its owner can read (mode 0600), with the folder if it is missing. The file is
// whole or not there.
func Write(path string, document any) error {
	data, err := json.MarshalIndent(document, "", "  ")
	if err != nil {
		return err
	}
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		return err
	}
	partial := path + ".partial"
	_ = os.Remove(partial) // its mode may be another
	file, err := os.OpenFile(partial, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
	if err != nil {
		return err
	}
	_, err = file.Write(append(data, '\n'))
	if err = errors.Join(err, file.Close()); err != nil {
		return err
	}
	return os.Rename(partial, path)
}

// ErrDamaged is the error of Read for a file that is not the JSON of a document. Callers also return it if the document is not complete.
var ErrDamaged = errors.New("the file is damaged")

// Read reads a document that Write wrote. The file may be a copy, but it must be a regular file of this user or of root, of which
// others have no rights (on Windows neither is checked). The error wraps fs.ErrNotExist, ErrDamaged, or has a reason and remedy.
func Read(path string, document any) error {
	data, err := examine(path, false)
	if err == nil && json.Unmarshal(data, document) != nil {
		err = fmt.Errorf("%s: %w", diag.Line(path), ErrDamaged)
	}
	return err
}

// Folder makes a folder with secrets private (mode 0700). It fails if another user owns the folder, or if it is a link. A missing
// folder is no error, since Write makes it. On Windows owner and mode are neither checked nor changed.
func Folder(path string) error {
	if _, err := examine(path, true); !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	return nil
}

// mostBytes bounds the size of a file that is read. The rest of a longer one is missing, so that it is damaged.
const mostBytes = 1 << 20

// examine reads a file, or makes a folder private, if no other user can have made it.
func examine(path string, folder bool) ([]byte, error) {
	shown := diag.Line(path)
	f, err := os.OpenFile(path, os.O_RDONLY|syscall.O_NONBLOCK, 0) // a named pipe would wait for its other end
	if err != nil {
		return nil, fmt.Errorf("%s: %w", shown, errors.Unwrap(err)) // which has the path as it is
	}
	defer f.Close()
	info, err := f.Stat()
	entry, failed := os.Lstat(path)
	if err = errors.Join(err, failed); err != nil {
		return nil, err
	}
	switch owner, others := access(info); {
	case folder && (!info.IsDir() || !os.SameFile(info, entry)): // the target of a link would become private
		return nil, fmt.Errorf("%s is a link or not a folder; remove it", shown)
	case !folder && !info.Mode().IsRegular():
		return nil, fmt.Errorf("%s is not a regular file; copy its content into one", shown)
	case owner != os.Geteuid() && (folder || owner != 0):
		return nil, fmt.Errorf("%s belongs to another user (%d); remove it or, if you trust its content, run: chown %d %[1]s", shown, owner, os.Geteuid())
	case folder && others != 0:
		return nil, f.Chmod(0o700)
	case folder:
		return nil, nil
	case others != 0:
		return nil, fmt.Errorf("%s: other users have rights to this file (mode %04o); run: chmod 600 %[1]s", shown, info.Mode().Perm())
	}
	return io.ReadAll(io.LimitReader(f, mostBytes))
}

// Reached returns the name by which other machines reach an address HOST:PORT that this one listens to.
func Reached(listen string) string {
	host, _, _ := net.SplitHostPort(listen)
	if ip := net.ParseIP(host); host == "" || ip != nil && ip.IsUnspecified() {
		if name, err := os.Hostname(); err == nil {
			return name
		}
	}
	return host
}

// Plain returns the URL of a server, or several with commas, without what may be secret: user, password, token and query. It
// need not be valid.
func Plain(address string) string {
	parts := strings.Split(address, ",")
	if strings.Contains(address, "@") && slices.ContainsFunc(parts, func(p string) bool { return !strings.Contains(p, "://") }) {
		parts = []string{address} // the comma may be one of a password
	}
	for i, p := range parts {
		parts[i] = plain(p)
	}
	return strings.Join(parts, ",")
}

func plain(address string) string {
	scheme, rest, ok := strings.Cut(address, "://")
	if ok {
		scheme += "://"
	} else {
		scheme, rest = "", address
	}
	at, query := strings.LastIndexByte(rest, '@'), strings.IndexAny(rest, "?#")
	switch {
	case query < 0:
		return scheme + rest[at+1:]
	case at < query:
		return scheme + rest[at+1:query]
	}
	return scheme + "…" // the password has a ?, or the query an @
}
