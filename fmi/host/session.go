package host

import (
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/macrostep/macrostep/fmi"
	"github.com/macrostep/macrostep/fmi/diag"
	"github.com/macrostep/macrostep/fmi/internal/remote"
)

// session has the instances of a run. It ends with its connection.
type session struct {
	server *Server
	id     string
	conn   *stream
	over   chan struct{} // closed at its end

	mu      sync.Mutex
	workers []*group  // changed by the goroutine that serves the connection
	busy    time.Time // since then a request is executed; zero = none is
	aborted bool

	// Of the goroutine that serves the connection.
	slots  map[uint64]*slot
	last   uint64        // number of a slot
	upload *upload       // of an FMU that is being sent; nil = none is
	parts  []remote.Part // of a request
	out    []remote.Part // of an answer
	frame  []byte        // buffer of answers

	logMu sync.Mutex
	logs  []remote.Part
	size  int // bytes of logs
}

// slot is an instance.
type slot struct {
	number uint64
	ask    openAsk
	fmu    *stored
	group  *group
}

// workerLink is the connection to a worker.
type workerLink interface {
	fmi.Link
	Active() uint64 // the instance that it was calling when it ended, if Ended.Begun is not 0
	Kill()          // in any goroutine
}

// group is a worker with its instances.
type group struct {
	link    workerLink
	ask     openAsk // of the first instance
	slots   []*slot
	printer atomic.Uint64 // the instance to which output is attributed: the first
	ended   *fmi.Ended    // how it has ended; nil = it has not
	common  bool          // it has had several instances at a time

	under  []remote.Part // of the request under way
	buf    []byte
	posted error
}

// serve serves the connection until its end.
func (se *session) serve(r reply) {
	done := make(chan struct{})
	var beating sync.WaitGroup
	beating.Go(func() { se.beat(done) })
	why := ""
	for err := se.conn.Send(document(kindReply, r)); err == nil; {
		limit := time.Duration(0)
		if se.upload != nil { // it takes room from others
			limit = se.conn.limit
		}
		se.conn.wait(limit)
		var kind uint64
		var content []byte
		if kind, content, err = se.conn.Receive(remote.MaxMessage); err != nil {
			break
		}
		se.mu.Lock()
		se.busy = time.Now()
		se.mu.Unlock()
		frame := se.request(kind, content)
		se.mu.Lock()
		se.busy = time.Time{}
		se.mu.Unlock()
		if frame == nil {
			why = "it has sent an invalid request"
			break
		}
		if said := se.said(); said != nil {
			err = se.conn.Send(remote.EndFrame(remote.AppendParts(remote.BeginFrame(nil, kindSaid), said)))
		}
		if err == nil {
			err = se.conn.Send(frame)
		}
	}
	close(done)
	beating.Wait()
	if n := len(se.slots); why == "" && n > 0 {
		why = fmt.Sprintf("its connection has ended (instances: %d)", n)
	}
	if why != "" {
		se.server.o.Log("a run is given up: " + why)
	}
	for number := range se.slots {
		se.close(number)
	}
	se.upload.drop()
	se.server.forget(se)
	close(se.over)
}

// aliveEach is the longest time between two signs of a host that is at work.
const aliveEach = time.Second

// beat sends a sign of life each second while a request is executed. The session ends if that fails.
func (se *session) beat(done <-chan struct{}) {
	each := min(aliveEach, se.conn.limit/4)
	t := time.NewTicker(each)
	defer t.Stop()
	alive := remote.EndFrame(remote.BeginFrame(nil, kindAlive))
	for {
		select {
		case <-done:
			return
		case now := <-t.C:
			se.mu.Lock()
			busy := !se.busy.IsZero() && now.Sub(se.busy) > each/2
			se.mu.Unlock()
			if busy && se.conn.Send(alive) != nil {
				se.abort(true)
				return
			}
		}
	}
}

// abort ends the session, and its workers at once if it is at work or if they are to be killed. Any goroutine may call it.
func (se *session) abort(kill bool) {
	_ = se.conn.Close()
	se.mu.Lock()
	defer se.mu.Unlock()
	se.aborted = true
	if kill || !se.busy.IsZero() {
		for _, g := range se.workers {
			g.link.Kill() // an FMU may never return
		}
	}
}

// request executes a request and returns its answer; nil = no client sends it.
func (se *session) request(kind uint64, content []byte) []byte {
	switch kind {
	case kindRun:
		frame := se.run(remote.BeginFrame(se.frame, kindAnswer), content)
		se.frame = nil
		if cap(frame) <= maxPiece { // a large one is not needed again soon
			se.frame = frame
		}
		return frame
	case kindAsk:
		var a ask
		if json.Unmarshal(content, &a) != nil {
			return nil
		}
		return document(kindReply, se.do(&a))
	case kindPiece:
		if se.upload != nil {
			return document(kindReply, se.receive(content))
		}
	}
	return nil
}

// receive stores a piece of an FMU.
func (se *session) receive(piece []byte) reply {
	u := se.upload
	done, err := u.write(piece)
	if done || err != nil {
		se.upload = nil
	}
	if err != nil {
		return se.failed("%s cannot be stored: %w", u.ask.Name, err)
	}
	return reply{}
}

// failed refuses a request for a reason of the host, which its log has in full.
func (se *session) failed(format string, a ...any) reply {
	err := fmt.Errorf(format, a...)
	se.server.o.Log("refused: " + err.Error())
	return refusal("", "host %s: %s", se.server.o.Name, diag.WithoutPaths(err.Error(), se.server.store.folders...))
}

// do carries out an ask.
func (se *session) do(a *ask) reply {
	switch {
	case a.Open != nil:
		return se.open(a.Open)
	case a.Close != nil:
		return reply{Ended: se.close(*a.Close)}
	case a.List:
		about := se.server.Status()
		return reply{Offers: se.server.store.offers(), About: &about}
	case a.Send != nil:
		if !se.server.o.Accept {
			return se.refuseFMU(a.Send.Name)
		}
		se.upload.drop()
		var err error
		if se.upload, err = se.server.store.receive(a.Send); err != nil {
			return se.failed("%s cannot be stored: %w", a.Send.Name, err)
		}
	}
	return reply{}
}

func (se *session) refuseFMU(name string) reply {
	return refusal("put it into one of the folders of the host, or let the host take any FMU (macrostep host --accept)",
		"host %s does not offer %s", se.server.o.Name, name)
}

// open makes room for an instance in a worker.
func (se *session) open(a *openAsk) reply {
	s := se.server
	f, err := s.store.find(a.Hash)
	switch {
	case err != nil:
		return se.failed("%s: %w", a.FMU, err)
	case f == nil && s.o.Accept:
		return reply{Missing: true}
	case f == nil:
		r := se.refuseFMU(a.FMU)
		if other := s.store.named(a.FMU); other != "" {
			r.Error = fmt.Sprintf("host %s offers another %s: %s, not %s", s.o.Name, a.FMU, other, a.Hash)
			r.Remedy = "use the same file on both machines"
		}
		return r
	}
	if !s.reserve() {
		s.store.release(f)
		return refusal("wait until another run has ended, or raise --max-instances of the host",
			"host %s is at its limit of %d instances", s.o.Name, s.o.MaxInstances)
	}
	se.last++
	sl := &slot{number: se.last, ask: *a, fmu: f}
	se.slots[sl.number] = sl
	if err := se.place(sl); err != nil {
		se.close(sl.number)
		return se.failed("%s (%s): %w", a.FMU, platform, err)
	}
	s.o.Log(a.nameOf() + ": begun")
	return reply{Instance: sl.number}
}

// place puts an instance into a worker, an old or a new one.
func (se *session) place(sl *slot) error {
	place, err := sl.fmu.Place(se.server.ctx)
	if err != nil {
		return err
	}
	sl.ask.Apart = sl.ask.Apart || sl.fmu.Description.CoSimulation.NeedsExecutionTool
	i := -1
	if !sl.ask.Apart {
		i = slices.IndexFunc(se.workers, func(g *group) bool { return g.takes(sl) })
	}
	if i >= 0 {
		se.workers[i].add(sl)
	} else if err := se.launch(sl); err != nil {
		return err
	}
	sl.group.post([]remote.Part{{Instance: sl.number, Message: place}}, remote.MaxTexts)
	if _, err = sl.group.await(); err != nil {
		sl.group.lost(nil, err)
	}
	return err
}

// launch starts a worker for an instance.
func (se *session) launch(sl *slot) error {
	g := &group{ask: sl.ask}
	l, err := se.server.launcher(&sl.ask).Launch(fmi.Launch{Instance: sl.ask.Instance, FMU: sl.fmu.Path, Hash: sl.fmu.Hash, Model: sl.ask.Model,
		Log: func(m []byte) {
			if number, ok := remote.LoggedBy(m); ok {
				se.log(part(partLog, number, m))
			}
		},
		Output: func(line string, _ bool) { se.log(part(partOutput, g.printer.Load(), []byte(line))) }})
	if err != nil {
		return err
	}
	g.link = l.(workerLink)
	g.add(sl)
	se.mu.Lock()
	defer se.mu.Unlock()
	if se.workers = append(se.workers, g); se.aborted {
		g.link.Kill()
	}
	return nil
}

// add puts an instance into the worker.
func (g *group) add(sl *slot) {
	sl.group = g
	g.common = g.common || len(g.slots) > 0
	g.slots = append(g.slots, sl)
	g.printer.Store(g.slots[0].number)
}

// takes reports whether an instance can be in the worker with those that are there.
func (g *group) takes(sl *slot) bool {
	if g.ended != nil || g.ask.Apart || g.ask.Timeout != sl.ask.Timeout || g.ask.Memory != sl.ask.Memory {
		return false
	}
	once := sl.fmu.Description.CoSimulation.CanBeInstantiatedOnlyOncePerProcess
	for _, other := range g.slots {
		if once && other.fmu.Hash == sl.fmu.Hash {
			return false
		}
		for name, version := range sl.fmu.Shared() {
			if v, there := other.fmu.Shared()[name]; there && v != version {
				return false
			}
		}
	}
	return true
}

const (
	// maxLogs bounds the messages that wait for an answer, in bytes.
	maxLogs = 16 << 20
	// maxSaid bounds a message with them.
	maxSaid = maxLogs + maxPiece
	// logSize is more than a message takes beside its text.
	logSize = 32
)

// log adds a message to the next answer.
func (se *session) log(p remote.Part) {
	se.logMu.Lock()
	defer se.logMu.Unlock()
	switch n := len(p.Message) + logSize; {
	case se.size > maxLogs:
		return
	case se.size+n > maxLogs:
		se.size = maxLogs + 1
		p = part(partOutput, p.Instance&(1<<partShift-1), []byte("(the host drops further messages up to the end of this call)"))
	default:
		se.size += n
	}
	p.Message = append([]byte(nil), p.Message...)
	se.logs = append(se.logs, p)
}

// said returns the messages since the last answer.
func (se *session) said() []remote.Part {
	se.logMu.Lock()
	defer se.logMu.Unlock()
	logs := se.logs
	se.logs, se.size = nil, 0
	return logs
}

func (g *group) post(parts []remote.Part, most uint64) {
	g.buf = remote.AppendGroup(g.buf[:0], parts)
	g.posted = g.link.Post(g.buf, most)
	if cap(g.buf) > maxPiece {
		g.buf = nil // a large one is not needed again soon
	}
}

func (g *group) await() ([]byte, error) {
	if g.posted != nil {
		return nil, g.posted
	}
	return g.link.Await()
}

// run executes the requests of instances and appends the answer to frame; nil = the request is not valid.
func (se *session) run(frame, content []byte) []byte {
	var err error
	if se.parts, err = remote.Parts(se.parts[:0], content); err != nil {
		return nil
	}
	for _, p := range se.parts {
		sl := se.slots[p.Instance]
		if sl == nil {
			return nil
		}
		sl.group.under = append(sl.group.under, p)
	}
	for _, g := range se.workers {
		if len(g.under) > 0 && g.ended == nil {
			g.post(g.under, remote.MaxMessage)
		}
	}
	out := se.out[:0]
	for _, g := range se.workers {
		if len(g.under) == 0 {
			continue
		}
		if g.ended == nil {
			answer, err := g.await()
			n := len(out)
			if err == nil {
				out, err = remote.Parts(out, answer) // valid until the next request
			}
			if err != nil {
				out = g.lost(out[:n], err)
			}
		} else {
			for _, p := range g.under {
				out = append(out, endedPart(p.Instance, g.ended))
			}
		}
		g.under = g.under[:0]
	}
	se.out = out
	return remote.EndFrame(remote.AppendParts(frame, out))
}

// lost appends how a worker has ended, for each instance of a request.
func (g *group) lost(out []remote.Part, err error) []remote.Part {
	var e *fmi.Ended
	if !errors.As(err, &e) {
		e = &fmi.Ended{Reason: diag.WithoutPaths(err.Error())}
	}
	// The instance that ended it, if that is known.
	culprit := uint64(0)
	if e.Begun > 0 {
		culprit = g.link.Active()
	} else if len(g.slots) == 1 {
		culprit = g.slots[0].number
	}
	var names []string
	for _, sl := range g.slots {
		if sl.number == culprit || culprit == 0 {
			names = append(names, sl.ask.Instance)
		}
	}
	who := "was ended by " + strings.Join(names, ", ")
	if culprit == 0 {
		who = "was ended by one of " + strings.Join(names, ", ")
	}
	g.ended = &fmi.Ended{Output: e.Output, Said: e.Said,
		Reason: fmt.Sprintf("the process that it shares %s: %s; --isolate COMPONENT gives it one of its own", who, e.Reason)}
	for _, p := range g.under {
		if p.Instance == culprit {
			out = append(out, endedPart(p.Instance, e))
		} else {
			out = append(out, endedPart(p.Instance, g.ended))
		}
	}
	return out
}

// close frees the room of an instance. It returns how the worker ended if that was not by itself; nil = it was,
// or it goes on for other instances.
func (se *session) close(number uint64) (end *fmi.Ended) {
	sl := se.slots[number]
	if sl == nil {
		return nil
	}
	delete(se.slots, number)
	se.server.release(1)
	se.server.store.release(sl.fmu)
	g := sl.group
	if g == nil { // no worker was found
		return nil
	}
	g.slots = slices.DeleteFunc(g.slots, func(other *slot) bool { return other == sl })
	if len(g.slots) > 0 {
		g.printer.Store(g.slots[0].number)
		return nil
	}
	errors.As(g.link.Close(), &end) // no other error is left that matters
	if end != nil && g.common {
		end.Reason = "the process that it shared with other instances: " + end.Reason
	}
	se.mu.Lock()
	defer se.mu.Unlock()
	se.workers = slices.DeleteFunc(se.workers, func(other *group) bool { return other == g })
	return end
}
