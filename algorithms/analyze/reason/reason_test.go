package reason

import (
	"io/fs"
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// The messages of the analysis contain the words, all of them and no others, and each is explained.
func TestVocabulary(t *testing.T) {
	tag := regexp.MustCompile(`\[([a-z]+(?:-[a-z]+)?)\]["}:]?`)
	text := regexp.MustCompile(`"(?:[^"\\\n]|\\.)*"`)
	used := map[Word]bool{}
	err := fs.WalkDir(os.DirFS(".."), ".", func(path string, d fs.DirEntry, err error) error {
		if err != nil || !strings.HasSuffix(path, ".go") || strings.HasSuffix(path, "_test.go") {
			return err
		}
		data, err := fs.ReadFile(os.DirFS(".."), path)
		for _, literal := range text.FindAllString(string(data), -1) {
			for _, m := range tag.FindAllStringSubmatch(literal, -1) {
				if used[Word(m[1])] = true; !slices.Contains(All(), Word(m[1])) {
					t.Errorf("%s: %s is no word of the vocabulary: %s", path, m[1], literal)
				}
			}
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	for _, w := range All() {
		if means, do := w.Explain(); means == "" || do == "" {
			t.Errorf("%s is not explained", w)
		}
		if !used[w] && w != Failed {
			t.Errorf("no message contains %s", w)
		}
	}
}

func TestOf(t *testing.T) {
	for message, want := range map[string][]Word{
		"off by 0.07 [nonlinear]":                          {Nonlinear},
		"a[1] steps [own-steps]; runs stopped [no-time]":   {OwnSteps, NoTime},
		"one [noise]\ntwo [noise]":                         {Noise},
		"an FMU returned fmi2Error at x[2] [not a reason]": {Failed},
	} {
		if got := Of(message); !slices.Equal(got, want) {
			t.Errorf("%q: %v, want %v", message, got, want)
		}
	}
}
