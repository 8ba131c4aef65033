package page

import (
	"net/http"
	"net/http/httptest"
	"testing"
)

func TestGuard(t *testing.T) {
	secret := Guard{Token: "secret", Local: true}
	for _, c := range []struct {
		guard              Guard
		path, host, header string
		want               bool
	}{
		{Guard{}, "/", "127.0.0.1:80", "", true}, {Guard{}, "/", "[::1]", "", true}, {Guard{}, "/", "localhost", "", true}, {Guard{}, "/", "evil.example", "", false},
		{secret, "/?token=secret", "localhost:80", "", true}, {secret, "/", "localhost:80", "Bearer secret", true}, {secret, "/?token=secret", "evil.example:80", "", false},
		{secret, "/", "evil.example", "Bearer secret", false}, {secret, "/", "localhost", "", false}, {secret, "/", "localhost", "Bearer ", false},
		{secret, "/", "localhost", "Basic secret", false}, {secret, "/?token=secret", "localhost", "Bearer other", false}, {secret, "/?token=Secret", "localhost", "", false},
		{Guard{Token: "secret"}, "/?token=secret", "rig.example", "", true}, {Guard{Token: "secret"}, "/", "rig.example", "", false},
	} {
		r := httptest.NewRequest(http.MethodGet, "http://"+c.host+c.path, nil)
		if c.header != "" {
			r.Header.Set("Authorization", c.header)
		}
		if got := c.guard.Allows(r); got != c.want {
			t.Errorf("%+v: %s to %s with %q: %v", c.guard, c.path, c.host, c.header, got)
		}
	}
}
