package fmi

import (
	"errors"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/macrostep/macrostep/fmi/archive"
	"github.com/macrostep/macrostep/fmi/description"
	"github.com/macrostep/macrostep/fmi/diag"
)

// ReadOutline describes an FMU that Open refuses, because it is of another version of FMI or for Model Exchange only, and
// lists the platforms for which it has libraries.
func ReadOutline(path string) (o *description.Outline, platforms []string, err error) {
	var r io.ReadCloser
	if info, failed := os.Stat(path); failed == nil && info.IsDir() {
		entries, _ := os.ReadDir(filepath.Join(path, "binaries")) // it may be missing
		for _, e := range entries {
			platforms = append(platforms, e.Name())
		}
		r, err = os.Open(filepath.Join(path, descriptionName))
	} else {
		a, failed := archive.Open(path, &diag.List{}, archive.Limits{})
		if failed != nil {
			return nil, nil, failed
		}
		defer a.Close()
		for _, name := range a.Names() {
			if parts := strings.Split(name, "/"); len(parts) > 2 && parts[0] == "binaries" && !slices.Contains(platforms, parts[1]) {
				platforms = append(platforms, parts[1])
			}
		}
		r, err = a.Open(descriptionName)
	}
	if err != nil {
		return nil, nil, err
	}
	o, err = description.ReadOutline(r)
	return o, platforms, errors.Join(err, r.Close())
}
