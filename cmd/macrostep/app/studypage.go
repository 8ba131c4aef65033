package app

import (
	"io"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/macrostep/macrostep/master/simulate"
	"github.com/macrostep/macrostep/master/study"
	"github.com/macrostep/macrostep/master/study/page"
)

// studyPage keeps the page of a study up to date.
type studyPage struct {
	folder *study.Folder
	mu     sync.Mutex
	rows   []study.Row
	total  int
	stop   func() // the updates
}

// pageShare bounds the updates of the page to one part in so many of the time.
const pageShare = 20

func newStudyPage(f *study.Folder) *studyPage {
	s := &studyPage{folder: f}
	end, ended := make(chan struct{}), make(chan struct{})
	s.stop = sync.OnceFunc(func() { close(end); <-ended })
	go func() {
		defer close(ended)
		wait := page.Every * time.Second
		for {
			select {
			case <-end:
				return
			case <-time.After(wait):
			}
			began := time.Now()
			s.mu.Lock()
			rows, total := slices.Clone(s.rows), s.total
			s.mu.Unlock()
			slices.SortFunc(rows, func(a, b study.Row) int { return a.ID - b.ID })
			_ = s.write(page.Running, rows, total, study.Summarise(f.Plan, &study.Findings{Rows: rows})) // the last page reports errors
			wait = max(wait, pageShare*time.Since(began))
		}
	}()
	return s
}

func (s *studyPage) event(e study.Event) {
	if e.Extra != "" {
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.rows, s.total = append(s.rows, e.Row), e.Total
}

// end writes the last page.
func (s *studyPage) end(state page.State, rows []study.Row, r *study.Report) error {
	s.stop()
	return s.write(state, rows, s.total, r)
}

func (s *studyPage) write(state page.State, rows []study.Row, total int, r *study.Report) error {
	base := filepath.Base(s.folder.Plan.Path)
	p := &page.Page{Title: strings.TrimSuffix(base, filepath.Ext(base)), Plan: s.folder.Plan, Report: r, Rows: rows, Total: total, State: state,
		Made: "made by macrostep " + simulate.Version() + " on " + time.Now().Format("2006-01-02 15:04:05")}
	return s.folder.WriteFile(study.PageFile, func(w io.Writer) error { return page.Write(w, p) })
}
