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

	"github.com/macrostep/macrostep/master"
)

// Checkpoint is a checkpoint of a run with what is needed to go on from it in
// another process (master.Checkpoints).
type Checkpoint struct {
	// Facts name the run that it is of: what must be the same where it is resumed.
	Facts Facts `json:"facts"`
	// Arguments that the program was called with, to be called with them again;
	// it is theirs to say what is in them.
	Arguments []string `json:"arguments"`
	Every     float64  `json:"every"` // s between checkpoints, 0 = none
	T         float64  `json:"t"`     // s
	Steps     int      `json:"steps"` // macro steps up to it
	State     []byte   `json:"-"`     // master.Checkpoint.State
}

// Facts tell by name what a run was: hashes of FMUs, parameters in force …
type Facts map[string]string

// A checkpoint file is the mark, the version and the lengths of what follows, as
// little-endian numbers of 4, 8 and 8 bytes; the checkpoint as JSON, its state,
// and the SHA-256 of all of it.
const (
	checkpointMark    = "\x89MSCKP\r\n" // a transfer as text spoils it
	checkpointVersion = 4
	checkpointHead    = len(checkpointMark) + 4 + 8 + 8
)

// Write replaces the file at path in one go: whenever the process or the machine
// ends, there is the old checkpoint or the new one, whole.
func (c *Checkpoint) Write(path string) error {
	head, err := json.Marshal(c)
	if err != nil {
		return fmt.Errorf("writing the checkpoint: %w", err)
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
		return fmt.Errorf("writing the checkpoint: %w", err)
	}
	_ = held.Close() // nil or written and synced
	return nil
}

// ReadCheckpoint reads a file that Write has made. One that is something else,
// not whole or of another version is an error that says which.
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
		return nil, errors.New("this is no file; give a checkpoint that --checkpoint has written")
	}
	f, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	mark := make([]byte, len(checkpointMark))
	if _, err := f.ReadAt(mark, 0); err != nil || string(mark) != checkpointMark {
		return nil, errors.New("this is no checkpoint of macrostep")
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
		return nil, fmt.Errorf("the checkpoint has format %d, and this macrostep reads format %d: resume it with the macrostep that wrote it", v, checkpointVersion)
	}
	head, state := binary.LittleEndian.Uint64(b[at+4:]), binary.LittleEndian.Uint64(b[at+12:])
	room := uint64(len(b) - checkpointHead)
	if head > room || state > room-head || room-head-state != sha256.Size {
		return nil, fmt.Errorf("%w: it has %d bytes, and says that it has %d more than its head of %d", errDamaged, len(b), head+state+sha256.Size, checkpointHead)
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

// mostDifferences bounds the message about a foreign checkpoint.
const mostDifferences = 10

// Matches tells what of a run is not as it was at the checkpoint.
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
			errs = append(errs, fmt.Errorf("the checkpoint is of another run: %s is %s, and was not there", name, is))
		case !there:
			errs = append(errs, fmt.Errorf("the checkpoint is of another run: %s was %s, and is not there", name, was))
		default:
			errs = append(errs, fmt.Errorf("the checkpoint is of another run: %s was %s, and is %s", name, was, is))
		}
	}
	return errors.Join(errs...)
}

// AddSystem adds the facts of a coupled system: its components with their ports,
// and its connections.
func (f Facts) AddSystem(sys *master.System) {
	exact := func(v float64) string { return strconv.FormatFloat(v, 'g', -1, 64) }
	for i, info := range sys.Infos {
		for _, list := range []struct {
			what  string
			ports []master.Port
		}{{"inputs", info.In}, {"outputs", info.Out}, {"discrete inputs", info.DiscreteIn}, {"discrete outputs", info.DiscreteOut}, {"watched variables", info.Watch}} {
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

// short returns a list for reading, or its hash where it is long.
func short(names []string) string {
	const most = 8
	if len(names) <= most {
		return fmt.Sprintf("%q", names)
	}
	sum := sha256.Sum256(fmt.Appendf(nil, "%q", names))
	return fmt.Sprintf("%q and %d more (sha256 %x)", names[:most], len(names)-most, sum[:8])
}
