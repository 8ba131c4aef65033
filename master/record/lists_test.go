package record

import "testing"

// Lists in messages are written with commas.
func TestShort(t *testing.T) {
	if got := short([]string{"a.x", "b"}); got != "a.x, b" {
		t.Errorf("got %q", got)
	}
	if got := short([]string{"1", "2", "3", "4", "5", "6", "7", "8", "9"}); got[:len("1, 2, 3, 4, 5, 6, 7, 8 and 1 more (sha256 ")] != "1, 2, 3, 4, 5, 6, 7, 8 and 1 more (sha256 " {
		t.Errorf("got %q", got)
	}
}
