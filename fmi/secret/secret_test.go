package secret

import "testing"

func TestPlain(t *testing.T) {
	for address, want := range map[string]string{
		"nats://u:p@h:4222":                       "nats://h:4222",
		"u:p@h:4222":                              "h:4222",
		"nats://u:p@h, tls://token@i":             "nats://h, tls://i",
		"nats://u:p,q@h":                          "nats://h",
		"nats://u:p%40%2C@h":                      "nats://h",
		"nats://u:p@q@h":                          "nats://h",
		"nats://u:p%zz@[::1]:4222":                "nats://[::1]:4222",
		"h1:4222,h2:4222":                         "h1:4222,h2:4222",
		"nats://h?token=x":                        "nats://h",
		"nats://h?token=x@y":                      "nats://…",
		"nats://u:p?@h":                           "nats://…",
		"nats://a:b@h1,nats://c:d@h2,nats://e@h3": "nats://h1,nats://h2,nats://h3",
		"": "",
	} {
		if got := Plain(address); got != want {
			t.Errorf("%s: %s, not %s", address, got, want)
		}
	}
}
