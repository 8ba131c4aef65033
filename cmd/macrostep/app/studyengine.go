package app

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"runtime/debug"
	"slices"
	"sync"
	"time"

	"github.com/macrostep/macrostep/cmd/macrostep/internal/cluster"
	"github.com/macrostep/macrostep/fmi"
	"github.com/macrostep/macrostep/fmi/diag"
	"github.com/macrostep/macrostep/master/simulate"
	"github.com/macrostep/macrostep/master/study"
	"github.com/macrostep/macrostep/master/supervise"
)

// The works of an engine of a study.
const (
	studyOpenWork = "study open"
	studyRunWork  = "study run"
)

// collectionPercent has the processes of a study collect garbage rarely: a run leaves some hundred
// kilobytes, and little memory is in use.
const collectionPercent = 800

// studyWorks are done in an engine: opening the system of a folder, and running a variant of it.
func studyWorks(with extensions) map[string]supervise.Work {
	var folder *study.Folder
	var model *study.Model
	var job *supervise.Job // the present run
	return map[string]supervise.Work{
		studyOpenWork: func(j *supervise.Job) (any, error) {
			var from studyEngine
			if err := json.Unmarshal(j.Request, &from); err != nil {
				return nil, err
			}
			var err error
			if folder, err = study.OpenFolder(from.Folder, study.ReadOnly); err != nil {
				return nil, err
			}
			o := with.studyOptions()
			o.Engine, o.Expendable, o.Own = from.Name, true, []string{folder.Path}
			o.Running = func(s *simulate.System) { job.Limit(supervise.Limits{Call: s.StepTimeout, Memory: s.MemoryLimit}) }
			o.Settled = func(row study.Row, err error) { job.Settle(studyAnswer{Row: row}, err) }
			if folder.Plan.Keep != study.KeepNone {
				if o.Kept, err = folder.Runs(); err != nil {
					return nil, err
				}
			}
			debug.SetGCPercent(collectionPercent)
			if !setsWorkers(folder.Plan) {
				runtime.GOMAXPROCS(1) // the other cores have engines of their own
			}
			model, err = study.Open(j.Context, folder.Plan, o)
			return nil, err
		},
		studyRunWork: func(j *supervise.Job) (any, error) {
			var v study.Variant
			if err := json.Unmarshal(j.Request, &v); err != nil {
				return nil, err
			}
			if job = j; model == nil {
				return studyAnswer{New: true}, nil
			}
			row, err := model.Run(j.Context, v)
			return studyAnswer{Row: row, Spent: fmi.Alive() > 0}, err
		},
	}
}

// setsWorkers reports whether the runs of a plan may use several threads.
func setsWorkers(p *study.Plan) bool {
	return slices.ContainsFunc(p.Run, func(s study.Setting) bool { return s.Name == flagWorkers }) ||
		slices.ContainsFunc(p.Factors, func(f study.Factor) bool { return f.Name == study.SettingPrefix+flagWorkers })
}

// studyOptions are those of every study of the program.
func (with extensions) studyOptions() study.Options {
	return study.Options{Presets: with.presets, Dialects: with.dialects}
}

// studyEngine makes runs of a study in a supervised process.
type studyEngine struct {
	Folder, Name string

	folder *study.Folder
	warn   func(text string)
	engine *supervise.Engine
	opened bool
	deaths int // while the system was being opened, in a row
}

// studyEngines returns a function that makes engines for the study in a folder. warn takes warnings.
func (p *program) studyEngines(f *study.Folder, warn func(text string)) func(number int) cluster.Engine {
	host, _ := os.Hostname()
	folder, err := filepath.Abs(f.Path) // an engine may have another working folder
	if err != nil {
		folder = f.Path
	}
	return func(number int) cluster.Engine {
		return &studyEngine{Folder: folder, Name: fmt.Sprintf("%s:%d:%d", host, os.Getpid(), number), folder: f, warn: warn, engine: p.newEngine()}
	}
}

// mostOpenings bounds the engines that end while they open the system.
const mostOpenings = 5

// Run makes a run: see cluster.Engine.
func (e *studyEngine) Run(ctx context.Context, v study.Variant) (study.Row, error) {
	if !e.opened {
		_, err := e.engine.Do(ctx, studyOpenWork, e, nil)
		var death *supervise.Death
		if errors.As(err, &death) {
			if e.deaths++; e.deaths < mostOpenings {
				return e.Run(ctx, v)
			}
			return study.Row{}, fmt.Errorf("the system cannot be opened: %s", death.Reason())
		}
		if err != nil {
			return study.Row{}, err
		}
		e.opened, e.deaths = true, 0
	}
	within, end := e.limit(ctx, v)
	defer end()
	began := time.Now()
	text, err := e.engine.Do(within, studyRunWork, v, nil)
	var death *supervise.Death
	if errors.As(err, &death) {
		e.opened = false
	}
	switch {
	case ctx.Err() != nil:
		return study.Row{}, context.Cause(ctx)
	case death != nil && diag.DiskFailed(death.Lost):
		return study.Row{}, death.Lost
	case death != nil && death.After:
		var a studyAnswer
		if err := json.Unmarshal(text, &a); err != nil {
			return a.Row, err
		}
		if a.Row.Status == "" { // the run could not write its files
			return a.Row, cmp.Or[error](death.Failed, death)
		}
		if a.Row.Status == study.OK && !death.Outside { // no FMU is to blame for what others do after a run
			a.Row.Warn(death.Reason())
		}
		if e.folder.Plan.Keep == study.KeepFailed {
			if kept, err := e.folder.Runs(); err == nil {
				e.folder.Plan.Tidy(a.Row, kept)
			}
		}
		return a.Row, nil
	case within.Err() != nil && err != nil:
		reason := context.Cause(within).Error()
		if death != nil {
			reason += "; " + death.Reason()
		}
		row := e.folder.Plan.NoRow(v, study.TimedOut, reason)
		row.Seconds, row.Engine = time.Since(began).Seconds(), e.Name
		return row, nil
	case death != nil:
		return study.Row{}, &cluster.Death{Reason: death.Reason()}
	case err != nil:
		return study.Row{}, err
	}
	var a studyAnswer
	if err := json.Unmarshal(text, &a); err != nil {
		return a.Row, err
	}
	if a.New {
		end()
		e.opened = false
		return e.Run(ctx, v)
	}
	if a.Spent {
		e.opened = false
		return a.Row, e.Close()
	}
	return a.Row, nil
}

// studyAnswer is the answer to studyRunWork.
type studyAnswer struct {
	Row   study.Row
	Spent bool // an FMU has returned Fatal, so that it has no further instance in the engine
	New   bool // the engine has not opened the system, because the one before ended between two runs
}

// overtimePatience is how long a run over its time limit may take to end by itself.
const overtimePatience = 300 * time.Millisecond

// limit bounds a run by the time limit of the plan; an FMU that does not return loses its engine.
func (e *studyEngine) limit(ctx context.Context, v study.Variant) (context.Context, func()) {
	limit := e.folder.Plan.Longest(v)
	if limit == 0 {
		return ctx, func() {}
	}
	within, cancel := context.WithTimeoutCause(ctx, limit, e.folder.Plan.OverTime(v))
	var once sync.Once
	kill := time.AfterFunc(limit+overtimePatience, func() { once.Do(func() { e.engine.Kill("ended at the time limit of the run") }) })
	return within, func() { kill.Stop(); once.Do(func() {}); cancel() }
}

// Close ends the process. Exit handlers and destructors of FMUs that end it otherwise change no row.
func (e *studyEngine) Close() error {
	err := e.engine.Close()
	var death *supervise.Death
	if errors.As(err, &death) {
		e.warn(fmt.Sprintf("warning: after the last run: %s; no row is lost", death.Reason()))
		return nil
	}
	return err
}

// studyCache is the folder for files of studies from other machines.
func studyCache() (string, error) {
	dir, err := os.UserCacheDir()
	if err != nil {
		return "", err
	}
	return filepath.Join(dir, "macrostep", "studies"), nil
}
