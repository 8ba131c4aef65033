package plainjson

import (
	"bytes"
	"encoding/json"
	"math"
	"testing"
	"time"
)

type inner struct {
	Name  string `json:"name"`
	Shown int    `json:"shown"`
}

type unit string

func (u unit) MarshalText() ([]byte, error) { return []byte("<" + string(u) + ">"), nil }

type document struct {
	inner
	*Extra
	Shown  string             `json:"shown"` // hides that of inner
	Number float64            `json:"number"`
	None   *float64           `json:"none"`
	Any    any                `json:"any"`
	List   []string           `json:"list"`
	Left   []string           `json:"left,omitempty"`
	Empty  map[string]int     `json:"empty"`
	Orders map[int]bool       `json:"orders"`
	Units  []unit             `json:"units"`
	Nested map[string][]inner `json:"nested"`
	Bytes  []byte             `json:"bytes"`
	Time   time.Time          `json:"time"`
	Array  [2]float64         `json:"array"`
	Plain  bool
	Tagged inner  `json:",omitempty"`
	Hidden func() `json:"-"`
	hidden int
}

// Extra is embedded by a pointer.
type Extra struct {
	Extra string `json:"extra"`
}

// Documents without nil lists and with finite numbers are those of encoding/json.
func TestMarshalAsEncodingJSON(t *testing.T) {
	for _, v := range []any{
		document{inner: inner{"a\u2028<b>\xff\"\n", 1}, Extra: &Extra{"x"}, Shown: "y", Number: 1e21, Any: []any{1, "x", nil, 1e-7}, List: []string{},
			Empty: map[string]int{}, Orders: map[int]bool{10: true, 9: false, -1: true}, Units: []unit{"m"}, Nested: map[string][]inner{"b": {{}}, "a": {}},
			Bytes: []byte("abc"), Time: time.Unix(0, 0).UTC(), hidden: 1},
		&document{List: []string{"&"}, Left: []string{"l"}, Empty: map[string]int{"<": 1}, Orders: map[int]bool{}, Units: []unit{}, Nested: map[string][]inner{}, Bytes: []byte{}},
		nil, 1, "x", []int{}, map[string]any{"b": map[string]any{}, "a": 0.1}, json.RawMessage(`{"a": [1,2]}`),
	} {
		var want bytes.Buffer
		e := json.NewEncoder(&want)
		e.SetEscapeHTML(false)
		e.SetIndent("", "  ")
		if err := e.Encode(v); err != nil {
			t.Fatal(err)
		}
		if got, err := Marshal(v); err != nil || string(got) != want.String() {
			t.Errorf("%v: %s, want %s", err, got, want.String())
		}
	}
}

// Nil lists and maps are empty, numbers that are not finite null, wherever they are.
func TestMarshalPlain(t *testing.T) {
	inf := math.Inf(1)
	for want, v := range map[string]any{
		"[]":                []string(nil),
		"{}":                map[string]int(nil),
		"null":              math.NaN(),
		`{"a":[],"b":null}`: map[string]any{"a": []int(nil), "b": &inf},
		`[[],[null,1]]`:     [][]float64{nil, {-inf, 1}},
		`[null]`:            []any{math.Inf(-1)},
		`[{"list":[]}]`: []struct {
			List []int    `json:"list"`
			Left []int    `json:"left,omitempty"`
			Zero *float64 `json:"zero,omitempty"`
		}{{}},
	} {
		got, err := Marshal(v)
		var compact bytes.Buffer
		if err != nil || json.Compact(&compact, got) != nil || compact.String() != want {
			t.Errorf("%v: %s, want %s", err, got, want)
		}
	}
	if _, err := Marshal([]any{func() {}}); err == nil {
		t.Error("a function has no JSON")
	}
}
