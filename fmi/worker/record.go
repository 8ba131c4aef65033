package worker

import (
	"cmp"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"runtime"

	"github.com/macrostep/macrostep/fmi"
	"github.com/macrostep/macrostep/fmi/archive"
)

// Record is a folder with files about FMUs that have crashed, which are isolated in later runs.
// Errors of reading and writing are ignored.
type Record struct{ Dir string }

// recordVersion is the version of the files.
const recordVersion = 1

// crashFile is the file about an FMU.
type crashFile struct {
	Version  int    `json:"version"`
	FMU      string `json:"fmu"`   // hash
	Model    string `json:"model"` // for information
	Platform string `json:"platform"`
	How      string `json:"how"`
}

func platform() string { return runtime.GOOS + "/" + runtime.GOARCH }

// Path is the file about an FMU, by its hash, also if there is none. Without it the crash is forgotten.
func (r *Record) Path(hash string) string {
	sum := sha256.Sum256([]byte(platform() + " " + hash))
	return filepath.Join(r.Dir, "crashed", hex.EncodeToString(sum[:])+".json")
}

// Crashed returns how an FMU has crashed and which file to delete to forget it, "" if it has no record.
func (r *Record) Crashed(f *fmi.FMU) string {
	if r.Dir == "" || f.Hash == "" {
		return ""
	}
	var c crashFile
	if data, err := os.ReadFile(r.Path(f.Hash)); err == nil && json.Unmarshal(data, &c) == nil &&
		c.Version == recordVersion && c.FMU == f.Hash && c.Platform == platform() {
		return fmt.Sprintf("%s (to forget this, delete %s)", cmp.Or(c.How, "it crashed"), r.Path(f.Hash))
	}
	return ""
}

// Lost records that an FMU has crashed; it is for Launcher.Lost.
func (r *Record) Lost(to fmi.Launch, e *fmi.Ended) { r.Take(to, e) }

// Take records that an FMU has crashed, and reports whether it made a record.
func (r *Record) Take(to fmi.Launch, e *fmi.Ended) (known bool) {
	if r.Dir == "" || to.Hash == "" || !e.Crash {
		return false
	}
	c := crashFile{Version: recordVersion, FMU: to.Hash, Model: to.Model, Platform: platform(), How: e.Reason}
	data, err := json.MarshalIndent(c, "", "  ")
	if err != nil || os.MkdirAll(filepath.Dir(r.Path(to.Hash)), 0o700) != nil {
		return false
	}
	return archive.WriteFile(r.Path(to.Hash), append(data, '\n')) == nil
}
