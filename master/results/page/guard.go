package page

import (
	"crypto/subtle"
	"net"
	"net/http"
	"net/url"
	"strings"
)

// Guard knows who may ask a service of a run. Requests that the page of another site
// makes, by their header Origin, are refused always.
type Guard struct {
	// Token has to be part of the address, as token=…, or of the header Authorization,
	// as Bearer …; "" = none is asked for.
	Token string
	// Local takes only requests to an IP address or to localhost, and so none of a site
	// whose name leads to this machine. Without a token it is always so.
	Local bool
}

// Allows reports whether a request may be answered.
func (g Guard) Allows(r *http.Request) bool {
	if from := r.Header.Get("Origin"); from != "" { // of the page that asks
		if u, err := url.Parse(from); err != nil || !strings.EqualFold(u.Host, r.Host) {
			return false
		}
	}
	if (g.Local || g.Token == "") && !local(r.Host) {
		return false
	}
	given, bearer := strings.CutPrefix(r.Header.Get("Authorization"), "Bearer ")
	if !bearer {
		given = r.URL.Query().Get("token")
	}
	return g.Token == "" || subtle.ConstantTimeCompare([]byte(given), []byte(g.Token)) == 1
}

func local(host string) bool {
	if h, _, err := net.SplitHostPort(host); err == nil {
		host = h
	}
	return strings.EqualFold(host, "localhost") || net.ParseIP(strings.Trim(host, "[]")) != nil
}

// Handler answers with next whoever is allowed to ask.
func (g Guard) Handler(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		h := w.Header()
		h.Set("Cache-Control", "no-store")
		h.Set("X-Content-Type-Options", "nosniff")
		h.Set("X-Frame-Options", "DENY")
		h.Set("Referrer-Policy", "no-referrer") // a token is part of the address
		if !g.Allows(r) {
			http.Error(w, "this run is not for you: the address that macrostep has printed holds a token, which may also be sent as Authorization: Bearer TOKEN", http.StatusForbidden)
			return
		}
		next.ServeHTTP(w, r)
	})
}
