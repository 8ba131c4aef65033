package page

import (
	"crypto/subtle"
	"net"
	"net/http"
	"net/url"
	"strings"
)

// Guard controls access to the web service of a run. It always refuses requests from pages of
// other sites, by the header Origin.
type Guard struct {
	// Token must be in the address, as token=…, or in the header Authorization, as Bearer …;
	// "" = no token.
	Token string
	// Local accepts only requests to an IP address or localhost, so that no site whose name
	// resolves to this machine has access. Without a token, it is always on.
	Local bool
}

// Allows reports whether a request may be answered.
func (g Guard) Allows(r *http.Request) bool {
	if from := r.Header.Get("Origin"); from != "" {
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

// Handler passes allowed requests to next.
func (g Guard) Handler(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		h := w.Header()
		h.Set("Cache-Control", "no-store")
		h.Set("X-Content-Type-Options", "nosniff")
		h.Set("X-Frame-Options", "DENY")
		h.Set("Referrer-Policy", "no-referrer") // a token is part of the address
		if !g.Allows(r) {
			http.Error(w, "access denied: use the address that macrostep has printed, which ends in ?token= and a token "+
				"(that of MACROSTEP_TOKEN in place of $MACROSTEP_TOKEN), or send Authorization: Bearer TOKEN", http.StatusForbidden)
			return
		}
		next.ServeHTTP(w, r)
	})
}
