package record

import (
	"bytes"
	"crypto/sha256"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"slices"
	"strconv"
	"strings"

	"github.com/macrostep/macrostep/master"
)

// Checkpoint is a checkpoint of a run (master.Checkpoints) with all data to resume it in
// another process.
type Checkpoint struct {
	// Facts must be the same in the resumed run.
	Facts Facts `json:"facts"`
	// System and Settings are those of the resumed run, unless it is given others.
	System   string  `json:"system"`
	Settings []Given `json:"settings"`
	// DefaultStep is the macro step in s that was derived from the time span, 0 if the step had another source. The
	// resumed run keeps it, whatever its stop time.
	DefaultStep float64 `json:"default_step,omitempty"`
	Every       float64 `json:"every"` // s between checkpoints, 0 = none
	T           float64 `json:"t"`     // s
	Steps       int     `json:"steps"` // macro steps before it
	State       []byte  `json:"-"`     // master.Checkpoint.State
}

// Given is a setting that is given for a run, as macrostep run takes it: the flag --Name with the value Text.
type Given struct {
	Name     string `json:"name"`
	Text     string `json:"text"`
	Key      string `json:"key,omitempty"`      // the parameter, component or bond that Text is for; "" = none
	Source   string `json:"source"`             // for messages and manifests
	Document bool   `json:"document,omitempty"` // the source is a document
}

// Facts describe a run by named values: hashes of FMUs, parameters …
type Facts map[string]string

// A checkpoint file consists of the mark; the version, the length of the JSON and the length
// of the state as little-endian numbers of 4, 8 and 8 bytes; the checkpoint as JSON; its
// state; and the SHA-256 of all of these.
const (
	checkpointMark    = "\x89MSCKP\r\n" // a transfer in text mode would damage it
	checkpointVersion = 8
	checkpointHead    = len(checkpointMark) + 4 + 8 + 8
)

// Write atomically replaces the file at path: after a crash of the process or the machine it
// is the old checkpoint or the new one.
func (c *Checkpoint) Write(path string) error {
	head, err := json.Marshal(c)
	if err != nil {
		return fmt.Errorf("the checkpoint %w", NotWritten(path, err))
	}
	b := make([]byte, 0, checkpointHead+len(head)+len(c.State)+sha256.Size)
	b = append(b, checkpointMark...)
	b = binary.LittleEndian.AppendUint32(b, checkpointVersion)
	b = binary.LittleEndian.AppendUint64(b, uint64(len(head)))
	b = binary.LittleEndian.AppendUint64(b, uint64(len(c.State)))
	b = append(b, head...)
	b = append(b, c.State...)
	sum := sha256.Sum256(b)
	held, err := replaceFile(path, append(b, sum[:]...), true, false)
	if err != nil {
		return fmt.Errorf("the checkpoint %w", NotWritten(path, err))
	}
	_ = held.Close() // nil or written and synced
	return nil
}

// ReadCheckpoint reads a file of Write. Errors distinguish files of another type, damaged
// files and other versions.
func ReadCheckpoint(path string) (*Checkpoint, error) {
	c, err := readCheckpoint(path)
	var at *fs.PathError
	if err != nil && !errors.As(err, &at) {
		err = fmt.Errorf("%s: %w", path, err)
	}
	return c, err
}

func readCheckpoint(path string) (*Checkpoint, error) {
	info, err := os.Stat(path)
	switch {
	case err != nil:
		return nil, err
	case !info.Mode().IsRegular():
		return nil, errors.New("not a regular file; give a checkpoint written by --checkpoint")
	}
	f, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	mark := make([]byte, len(checkpointMark))
	if _, err := f.ReadAt(mark, 0); err != nil || string(mark) != checkpointMark {
		return nil, errors.New("this is not a checkpoint of macrostep")
	}
	b, err := os.ReadFile(path)
	if err != nil {
		return nil, err
	}
	return parseCheckpoint(b)
}

var errDamaged = errors.New("the checkpoint is damaged; use another one, or run from the start")

func parseCheckpoint(b []byte) (*Checkpoint, error) {
	if len(b) < checkpointHead || string(b[:len(checkpointMark)]) != checkpointMark {
		return nil, fmt.Errorf("%w: it ends after %d bytes", errDamaged, len(b))
	}
	at := len(checkpointMark)
	if v := binary.LittleEndian.Uint32(b[at:]); v != checkpointVersion {
		return nil, fmt.Errorf("the checkpoint has format %d, but this macrostep reads format %d; resume it with the macrostep that wrote it",
			v, checkpointVersion)
	}
	head, state := binary.LittleEndian.Uint64(b[at+4:]), binary.LittleEndian.Uint64(b[at+12:])
	room := uint64(len(b) - checkpointHead)
	if head > room || state > room-head || room-head-state != sha256.Size {
		return nil, fmt.Errorf("%w: it has %d bytes instead of %d", errDamaged, len(b), uint64(checkpointHead)+head+state+sha256.Size)
	}
	end := len(b) - sha256.Size
	if sum := sha256.Sum256(b[:end]); !bytes.Equal(sum[:], b[end:]) {
		return nil, fmt.Errorf("%w: its checksum is wrong", errDamaged)
	}
	c := &Checkpoint{}
	if err := json.Unmarshal(b[checkpointHead:checkpointHead+int(head)], c); err != nil {
		return nil, fmt.Errorf("%w: %w", errDamaged, err)
	}
	c.State = b[checkpointHead+int(head) : end : end]
	return c, nil
}

// mostDifferences is the maximum number of differences in the message of Matches.
const mostDifferences = 10

// Matches returns an error that lists the facts in which a run differs from the checkpoint.
func (c *Checkpoint) Matches(now Facts) error {
	names := slices.Collect(maps.Keys(c.Facts))
	for name := range now {
		if _, known := c.Facts[name]; !known {
			names = append(names, name)
		}
	}
	slices.Sort(names)
	var errs []error
	for _, name := range names {
		was, then := c.Facts[name]
		is, there := now[name]
		switch {
		case then && there && was == is:
			continue
		case len(errs) == mostDifferences:
			return errors.Join(append(errs, errors.New("and more"))...)
		case !then:
			errs = append(errs, fmt.Errorf("the checkpoint belongs to another run: %s is %s, but was absent", name, is))
		case !there:
			errs = append(errs, fmt.Errorf("the checkpoint belongs to another run: %s was %s, but is absent", name, was))
		default:
			errs = append(errs, fmt.Errorf("the checkpoint belongs to another run: %s was %s, but is %s", name, was, is))
		}
	}
	return errors.Join(errs...)
}

// AddSystem adds the facts of a coupled system: its components with their ports, and its
// connections.
func (f Facts) AddSystem(sys *master.System) {
	exact := func(v float64) string { return strconv.FormatFloat(v, 'g', -1, 64) }
	for i, info := range sys.Infos {
		for _, list := range []struct {
			what  string
			ports []master.Port
		}{
			{"inputs", info.In}, {"outputs", info.Out}, {"discrete inputs", info.DiscreteIn},
			{"discrete outputs", info.DiscreteOut}, {"watched variables", info.Watch},
		} {
			if len(list.ports) == 0 {
				continue
			}
			var names []string
			for _, p := range list.ports {
				names = append(names, p.Name)
			}
			f["the "+list.what+" of "+info.Name] = short(names)
		}
		kind := "with states"
		if slices.Contains(sys.Late, i) {
			kind = "stateless, stepped after its sources"
		}
		f["component "+info.Name] = kind
		for k := sys.InAt[i]; k < sys.InAt[i+1]; k++ {
			if y, ok := sys.Source(k); ok {
				from := sys.OutName(y)
				if sys.Gain(k) != 1 || sys.Offset(k) != 0 {
					from += " times " + exact(sys.Gain(k)) + " plus " + exact(sys.Offset(k))
				}
				f["the source of "+sys.InName(k)] = from
			}
		}
	}
	for _, link := range sys.DiscreteLinks() {
		f["the source of "+link.To] = link.From + link.Map
	}
}

// short formats a list, a long one by its first names and its hash.
func short(names []string) string {
	const most = 8
	if len(names) <= most {
		return strings.Join(names, ", ")
	}
	sum := sha256.Sum256(fmt.Appendf(nil, "%q", names))
	return fmt.Sprintf("%s and %d more (sha256 %x)", strings.Join(names[:most], ", "), len(names)-most, sum[:8])
}
