package record

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/macrostep/macrostep/master"
	"github.com/macrostep/macrostep/master/plainjson"
)

// Manifest records how a result was produced. It is written twice: when the run begins, as
// incomplete, so that a killed run is not mistaken for a complete one, and at the end.
//
// Times are in seconds. Fields are always present in this order, except those marked absent;
// the keys of maps are sorted.
type Manifest struct {
	Schema   int            `json:"schema"` // version of the document; 0 = 1
	Status   master.Status  `json:"status"`
	Reason   string         `json:"reason"`  // why the run is not complete
	Outcome  master.Outcome `json:"outcome"` // the verdict on the run
	Versions Versions       `json:"versions"`
	Command  []string       `json:"command"`         // arguments of the program
	System   string         `json:"system"`          // as given
	Results  string         `json:"results"`         // the table; "" = none
	Trace    string         `json:"trace,omitempty"` // the table of attempts at macro steps; absent = none
	FMUs     []FMU          `json:"fmus"`

	Algorithm  string            `json:"algorithm"`  // preset
	Parameters map[string]string `json:"parameters"` // all, including defaults

	// Sources has the source of each setting that is not a default, by the name of the
	// setting: "algorithm", "param order", "bond axle", "rate motor", or the name of a flag.
	Sources map[string]string `json:"sources"`

	StartTime Setting  `json:"start_time"`
	StopTime  Setting  `json:"stop_time"`
	StepSize  Setting  `json:"step_size"`
	Tolerance *Setting `json:"tolerance"` // passed to the FMUs; null = none
	EndTime   float64  `json:"end_time"`  // last accepted communication point

	Steps      Steps       `json:"steps"`
	Orders     map[int]int `json:"orders"`               // accepted macro steps by extrapolation order
	Iterations int         `json:"iterations"`           // of correctors, over all attempts
	Jacobians  int         `json:"jacobian_evaluations"` // of the interface equation
	Monitored  []string    `json:"monitored"`            // variables of the error estimate
	// Bonds has, by name, how well power bonds conserve energy.
	Bonds         map[string]master.BondEnergy `json:"bonds"`
	Models        map[string]master.ModelUse   `json:"models,omitempty"` // by component
	FMUSteps      map[string]int               `json:"fmu_steps"`        // by component, including substeps, repeated and perturbed steps
	FMUSaves      map[string]int               `json:"fmu_saves"`        // of states, by component
	FMURestores   map[string]int               `json:"fmu_restores"`     // of states, by component
	Seconds       map[string]float64           `json:"seconds"`          // by component: wall time inside
	Workers       int                          `json:"workers"`          // threads that stepped the components
	WallSeconds   float64                      `json:"wall_seconds"`     // of stepping, including waits in real time
	MasterSeconds float64                      `json:"master_seconds"`   // of WallSeconds, without waits, outside the FMUs of the busiest worker
	RecordSeconds float64                      `json:"record_seconds"`   // of MasterSeconds, in recording
	StartSeconds  float64                      `json:"start_seconds"`    // before the stepping, of the last start: loading and initialisation
	// Restarts lists, by component, the restarts of its process (--on-crash=restart).
	Restarts map[string][]master.Restart `json:"restarts,omitempty"`

	// ResumedFrom is the checkpoint from which the run was resumed; null = it ran from the
	// start. Counters and times are the totals of both parts.
	ResumedFrom *Resumed `json:"resumed_from"`
	// Checkpoints describes the written checkpoints; null = none were requested.
	Checkpoints *Checkpoints `json:"checkpoints"`

	// Manipulated lists the variables that were set during the run; absent = none.
	Manipulated []string       `json:"manipulated,omitempty"`
	Scenario    *Scenario      `json:"scenario,omitempty"`
	Realtime    *master.Timing `json:"realtime,omitempty"` // absent = not a real-time run

	Loops    []master.Loop     `json:"loops"`
	Delivery []master.Delivery `json:"delivery"`
	// Replay and ReplayNoise have, by component, how well it repeats a step and by how much
	// repeated steps differ. They are tested only if the run relies on rollback.
	Replay      map[string]master.Replay `json:"replay"`
	ReplayNoise map[string]float64       `json:"replay_noise"`
	// Slopes has, by component, how well its directional derivatives agree with its outputs.
	// They are tested only if the algorithm relies on them.
	Slopes   map[string]master.SlopeTest `json:"slopes"`
	Error    *Error                      `json:"error,omitempty"` // absent = not measured
	Warnings []string                    `json:"warnings"`
	Notes    []string                    `json:"notes"` // findings in the documents that need no action

	// Of recorded variables "component.variable", Units has the units, Held lists those that change only at
	// communication points, and Connected has the output that an input equals.
	Units     map[string]string `json:"units,omitempty"`
	Held      []string          `json:"held,omitempty"`
	Connected map[string]string `json:"connected,omitempty"`
}

// Describe adds what is known of the recorded variables.
func (m *Manifest) Describe(recorded []Variable) {
	m.Units, m.Held, m.Connected = map[string]string{}, nil, map[string]string{}
	for _, v := range recorded {
		if v.Unit != "" {
			m.Units[v.Name] = v.Unit
		}
		if v.Held {
			m.Held = append(m.Held, v.Name)
		}
		if v.Equals != "" {
			m.Connected[v.Name] = v.Equals
		}
	}
}

// ManifestPath returns the path of the manifest beside a table: .json in place of .csv, else added, so that r.csv and
// r.parquet have manifests of their own.
func ManifestPath(table string) string {
	if ext := filepath.Ext(table); strings.EqualFold(ext, ".csv") {
		table = strings.TrimSuffix(table, ext)
	}
	return table + ".json"
}

// Versions identifies the programs that produced a result.
type Versions struct {
	Macrostep string `json:"macrostep"`
	Go        string `json:"go"`
	Platform  string `json:"platform"` // os/arch
}

// FMU identifies the FMU of a component.
type FMU struct {
	Component string   `json:"component"`
	Path      string   `json:"path"`
	Hash      string   `json:"hash"`   // "sha256:…" of the archive
	Tool      string   `json:"tool"`   // that exported it; "" = unknown
	Quirks    []string `json:"quirks"` // sorted
	// Isolated is the reason why it ran in a separate process, "" if it did not. Unasked: neither the user nor the
	// documents asked for that.
	Isolated string `json:"isolated,omitempty"`
	Unasked  bool   `json:"isolated_unasked,omitempty"`
}

// Setting is a number with its source.
type Setting struct {
	Value  float64 `json:"value"`
	Source string  `json:"source"` // "--step-size", "DefaultExperiment of Controller" …
}

// Steps counts macro steps.
type Steps struct {
	Accepted int     `json:"accepted"`
	Rejected int     `json:"rejected"`
	Mean     float64 `json:"mean"` // s; 0 if there are none
}

// Resumed is the checkpoint from which a run was resumed.
type Resumed struct {
	Checkpoint string  `json:"checkpoint"` // path
	Time       float64 `json:"time"`       // s
	Steps      int     `json:"steps"`      // macro steps before it
}

// Checkpoints describes the checkpoints of a run.
type Checkpoints struct {
	Path    string   `json:"path"`
	Every   float64  `json:"every"`   // s; 0 = only on an interrupt
	Written int      `json:"written"` // by this part of the run
	Time    *float64 `json:"time"`    // s, of the last one; null = none was written
}

// Scenario reports the events and expectations of a scenario.
type Scenario struct {
	Path         string          `json:"path"`
	Hash         string          `json:"hash"` // "sha256:…"
	Name         string          `json:"name"`
	Given        int             `json:"given"`    // events in the file
	Happened     int             `json:"happened"` // of these
	Events       []ScenarioEvent `json:"events"`   // in the order in which they happened; an event with an end has two entries
	Expectations []Expectation   `json:"expectations"`
}

// ScenarioEvent is an event that happened.
type ScenarioEvent struct {
	Line int      `json:"line"`
	Time float64  `json:"time"` // s, communication point at which it took effect
	Did  []string `json:"did"`
}

// Expectation is the result of an expectation.
type Expectation struct {
	Line     int    `json:"line"`
	Variable string `json:"variable"`
	What     string `json:"what"` // the expectation in words
	Passed   bool   `json:"passed"`
	// Min and Max bound a number in the window from From to Until, in s: at each of its points or, with Once, at one of them. A null is no
	// bound; values that are not numbers have neither Min nor Max.
	Min   *float64 `json:"min"`
	Max   *float64 `json:"max"`
	From  *float64 `json:"from"`
	Until *float64 `json:"until"`
	Once  bool     `json:"once"`
	// Unjudged: the run ended before the expectation was decided; Passed is false then.
	Unjudged bool `json:"unjudged,omitempty"`
	// Time, Value and Message are those of the failure, or of the value nearest to the limit.
	// Time is null if nothing was judged.
	Time    *float64 `json:"time"`
	Value   string   `json:"value"`
	Message string   `json:"message"`
}

// Count counts the expectations by result.
func (s *Scenario) Count() (n master.Expectations) {
	for _, e := range s.Expectations {
		switch {
		case e.Passed:
			n.Met++
		case e.Undecided():
			n.Undecided++
		default:
			n.Failed++
		}
	}
	return n
}

// Undecided reports whether the run ended before it was decided.
func (e *Expectation) Undecided() bool { return e.Unjudged || !e.Passed && e.Time == nil } // older manifests have no Unjudged

// Finish adds the result of a run of the system to the manifest. It appends warnings and
// notes to those already there.
func (m *Manifest) Finish(sys *master.System, r master.Result, delivery []master.Delivery) {
	m.Status, m.Reason, m.Outcome = r.Status, r.Reason, r.Outcome()
	m.EndTime = r.Time
	m.Steps = Steps{Accepted: r.Accepted, Rejected: r.Rejected}
	if r.Accepted > 0 {
		m.Steps.Mean = (r.Time - m.StartTime.Value) / float64(r.Accepted)
	}
	m.FMUSteps, m.Seconds = map[string]int{}, map[string]float64{}
	m.FMUSaves, m.FMURestores = map[string]int{}, map[string]int{}
	for i, info := range sys.Infos {
		if i < len(r.SubsystemSteps) {
			m.FMUSteps[info.Name] = r.SubsystemSteps[i]
		}
		if i < len(r.SubsystemSeconds) {
			m.Seconds[info.Name] = r.SubsystemSeconds[i]
		}
		if i < len(r.SubsystemSaves) {
			m.FMUSaves[info.Name], m.FMURestores[info.Name] = r.SubsystemSaves[i], r.SubsystemRestores[i]
		}
	}
	m.Orders = map[int]int{}
	for k, n := range r.Orders {
		if n > 0 {
			m.Orders[k] = n
		}
	}
	m.Iterations, m.Jacobians, m.Monitored = r.Iterations, r.Jacobians, r.Monitored
	m.Bonds, m.Models, m.Restarts = r.Bonds, r.Models, r.Restarts
	m.ReplayNoise = map[string]float64{}
	for name, replay := range r.Replay {
		m.ReplayNoise[name] = replay.Replays
	}
	m.Workers = r.Workers
	m.WallSeconds, m.MasterSeconds = r.WallSeconds, r.MasterSeconds
	m.RecordSeconds, m.StartSeconds = r.RecordSeconds, r.StartSeconds
	m.Manipulated, m.Realtime = r.Manipulated, r.Realtime
	m.Loops, m.Delivery, m.Replay, m.Slopes = r.Loops, delivery, r.Replay, r.Slopes
	m.Notes, m.Warnings = append(m.Notes, r.Notes...), append(m.Warnings, r.Warnings...)
}

// Break completes the manifest of a run whose process has died at a time (s) after so many
// macro steps. A run that had ended before keeps its counters.
func (m *Manifest) Break(status master.Status, reason string, at float64, steps int) {
	if m.Status == master.Incomplete {
		m.EndTime, m.Steps = at, Steps{Accepted: steps}
		if steps > 0 {
			m.Steps.Mean = (at - m.StartTime.Value) / float64(steps)
		}
	}
	m.Status, m.Reason = status, reason
	r := master.Result{Status: status}
	if m.Scenario != nil {
		r.Expectations.Undecided = len(m.Scenario.Expectations)
	}
	m.Outcome = r.Outcome()
}

// Verdict returns the outcome. If there is none (the run has not ended, or the manifest is of
// an older version), it derives the outcome from the other fields.
func (m *Manifest) Verdict() master.Outcome {
	if o := m.Outcome; o.Ended != "" {
		if judged := o.Stability != master.Stable || m.Error != nil; !judged || o.Stability == "unknown" { // of schema 1
			o.Stability = master.NotJudged
		}
		return o
	}
	r := master.Result{Status: m.Status, Accepted: m.Steps.Accepted}
	if m.Scenario != nil {
		r.Expectations = m.Scenario.Count()
	}
	return r.Outcome()
}

// Write replaces the file at path by the manifest, as [ManifestFile.Write] does.
func (m *Manifest) Write(path string) error {
	f := ManifestFile{Path: path}
	return errors.Join(f.Write(m), f.Close())
}

// ManifestFile is the file of the manifest of a run. It is locked against other runs from the
// first Write until Close.
type ManifestFile struct {
	Path string

	held *os.File // locked
}

// Write atomically replaces the file by the manifest. If another run has locked the file, the
// error is ErrBusy.
func (f *ManifestFile) Write(m *Manifest) error {
	data, err := m.JSON()
	if err != nil {
		return fmt.Errorf("writing manifest %s: %w", f.Path, err)
	}
	for {
		fresh := false
		if f.held == nil {
			err = patiently(func() (err error) { f.held, fresh, err = claim(f.Path); return err })
			if err != nil {
				return fmt.Errorf("the manifest %s: %w; wait until that run has ended, or choose another --output",
					f.Path, err)
			}
		}
		written, err := replaceFile(f.Path, data, false, fresh)
		if fresh && errors.Is(err, fs.ErrExist) {
			continue // another run created it meanwhile
		}
		if err != nil {
			return fmt.Errorf("the manifest %w", NotWritten(f.Path, err))
		}
		if written != nil {
			err = f.Close()
			f.held = written
		}
		return err
	}
}

// Close lets other runs write to the file.
func (f *ManifestFile) Close() error {
	if f.held == nil {
		return nil
	}
	err := f.held.Close()
	f.held = nil
	return err
}

// JSON returns the document that Write writes, with [] and {} for nil.
func (m *Manifest) JSON() ([]byte, error) {
	const schema = 2
	c := *m
	if c.Schema = schema; c.Status == "" {
		c.Status = master.Incomplete
	}
	c.Outcome = c.Verdict()
	// Unstable results may overflow these.
	c.Bonds = encodable(&c, "bond ", c.Bonds)
	c.Models = encodable(&c, "the model of ", c.Models)
	c.Replay = encodable(&c, "the test of rollback of ", c.Replay)
	c.ReplayNoise = encodable(&c, "the replay noise of ", c.ReplayNoise)
	c.Slopes = encodable(&c, "the test of slopes of ", c.Slopes)
	return plainjson.Marshal(&c)
}

// encodable returns a map without the entries that have an infinite or NaN number, which JSON
// cannot represent, and adds a warning about each of them; nil becomes empty.
func encodable[T any](m *Manifest, what string, entries map[string]T) map[string]T {
	kept := map[string]T{}
	for _, name := range slices.Sorted(maps.Keys(entries)) {
		if _, err := json.Marshal(entries[name]); err != nil {
			text := what + name + " is left out of the manifest: a number in it is not finite"
			m.Warnings = append(slices.Clip(m.Warnings), text)
			continue
		}
		kept[name] = entries[name]
	}
	return kept
}
