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
	"github.com/macrostep/macrostep/fmi/internal/remote"
)

// session has the instances of a run. It outlives its connections.
type session struct {
	server *Server
	id     string
	grace  time.Duration // without a connection

	work sync.Mutex // held while a request is executed

	mu       sync.Mutex
	workers  []*group    // changed by the goroutine that holds work
	conn     *stream     // nil = none
	leave    *time.Timer // ends the session without a connection
	received uint64      // number of the last request
	answered uint64      // number of its answer
	answer   []byte      // whole message
	busy     time.Time   // since then a request is executed; zero = none is
	over     bool
	ended    chan struct{}

	// Of the goroutine that holds work.
	slots map[uint64]*slot
	last  uint64        // number of a slot
	parts []remote.Part // of a request
	out   []remote.Part // of an answer

	logMu sync.Mutex
	logs  []remote.Part
	size  int // bytes of logs
}

// slot is an instance.
type slot struct {
	number uint64
	ask    openAsk
	fmu    *fmi.FMU
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

// serve serves a connection until its end.
func (se *session) serve(c *stream, r reply) {
	if !se.attach(c, r) {
		return
	}
	go se.beat(c)
	for {
		m, err := c.Receive(0)
		if err != nil {
			break
		}
		kind, number, content, err := open(m)
		if err != nil {
			break
		}
		if kind == kindEnd {
			se.end("")
			return
		}
		if !se.request(kind, number, content) {
			se.end("it has sent an invalid request")
			return
		}
	}
	se.mu.Lock()
	defer se.mu.Unlock()
	se.detached(c)
}

// attach makes c the connection of the session, greets it, and repeats the last answer if the client waits for it. The
// request that the session does not know is sent again by the client.
func (se *session) attach(c *stream, r reply) bool {
	se.mu.Lock()
	defer se.mu.Unlock()
	if se.over {
		_ = c.Send(finish(append(begin(nil, kindReply, 0), document(errorReply(codeSession, "", "the session has ended"))...)))
		return false
	}
	if se.conn != nil {
		_ = se.conn.Close()
	}
	if se.leave != nil {
		se.leave.Stop()
	}
	se.conn = c
	r.Received = se.received
	err := c.Send(finish(append(begin(nil, kindReply, 0), document(r)...)))
	if err == nil && se.answered == se.received && se.answered > 0 {
		err = c.Send(se.answer)
	}
	if err != nil {
		se.detached(c)
	}
	return err == nil
}

// detached starts the time after which the session ends without a connection.
func (se *session) detached(c *stream) {
	if se.conn != c || se.over {
		return
	}
	_ = c.Close()
	se.conn = nil
	se.leave = time.AfterFunc(se.grace, func() { se.end(fmt.Sprintf("the run has been away for %v", se.grace)) })
}

// aliveEach is how often a host at work says so, silentAfter how long a client waits for anything, both at most.
const (
	aliveEach   = time.Second
	silentAfter = 5 * time.Second
)

// beat tells the client that the host is at work on a request, until the connection is replaced.
func (se *session) beat(c *stream) {
	each := min(aliveEach, se.grace/8)
	t := time.NewTicker(each)
	defer t.Stop()
	m := finish(begin(nil, kindAlive, 0))
	for {
		select {
		case <-se.ended:
			return
		case now := <-t.C:
			se.mu.Lock()
			mine := se.conn == c
			var err error
			if mine && !se.busy.IsZero() && now.Sub(se.busy) > each/2 {
				if err = c.Send(m); err != nil {
					se.detached(c) // nobody else sees it while a request is executed
				}
			}
			se.mu.Unlock()
			if !mine || err != nil {
				return
			}
		}
	}
}

// request executes a request and sends its answer. It returns false for one that no client sends.
func (se *session) request(kind, number uint64, content []byte) bool {
	se.work.Lock()
	defer se.work.Unlock()
	se.mu.Lock()
	if se.over || number <= se.received { // it was sent again, but it had come
		defer se.mu.Unlock()
		return !se.over
	}
	se.received, se.busy = number, time.Now()
	se.mu.Unlock()
	m := begin(se.answer, kindAnswer, number)
	switch kind {
	case kindRun:
		if m = se.run(m, content); m == nil {
			return false
		}
	case kindAsk:
		var a ask
		if json.Unmarshal(content, &a) != nil {
			return false
		}
		r := se.do(&a)
		r.Parts = se.logged()
		m = append(begin(m, kindReply, number), document(r)...)
	default:
		return false
	}
	se.mu.Lock()
	defer se.mu.Unlock()
	se.answer, se.answered, se.busy = finish(m), number, time.Time{}
	if se.conn != nil {
		_ = se.conn.Send(se.answer) // the client asks for it again
	}
	return true
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
		if err := se.server.store.receive(se.id, a.Send); err != nil {
			return errorReply(codeRefused, "", "the host cannot store %s: %v", a.Send.Name, err)
		}
	}
	return reply{}
}

func (se *session) refuseFMU(name string) reply {
	return errorReply(codeUnknown, "put it into one of the folders of the host, or let the host take any FMU (macrostep host --accept)",
		"host %s does not offer %s", se.server.o.Name, name)
}

// open makes room for an instance in a worker.
func (se *session) open(a *openAsk) reply {
	s := se.server
	f, err := s.store.find(a.Hash)
	switch {
	case err != nil:
		return errorReply(codeRefused, "", "%s: %v", s.o.Name, err)
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
	place, err := f.Place()
	if err != nil {
		return errorReply(codeRefused, "", "host %s (%s): %v", s.o.Name, platform, err)
	}
	if !s.reserve() {
		return errorReply(codeLimit, "wait until another run has ended, or raise --max-instances of the host",
			"host %s is at its limit of %d instances", s.o.Name, s.o.MaxInstances)
	}
	se.last++
	sl := &slot{number: se.last, ask: *a, fmu: f}
	if sl.ask.Apart = a.Apart || f.Description.CoSimulation.NeedsExecutionTool; sl.ask.Apart {
		err = se.launch(sl)
	} else if i := slices.IndexFunc(se.workers, func(g *group) bool { return g.takes(sl) }); i >= 0 {
		se.workers[i].add(sl)
	} else {
		err = se.launch(sl)
	}
	if err != nil {
		s.release(1)
		return errorReply(codeRefused, "", "host %s: %v", s.o.Name, err)
	}
	se.slots[sl.number] = sl
	sl.group.post([]remote.Part{{Instance: sl.number, Message: place}})
	if _, err := sl.group.await(); err != nil {
		sl.group.lost(nil, err)
		se.close(sl.number)
		return errorReply(codeRefused, "", "host %s: %v", s.o.Name, err)
	}
	s.o.Log(fmt.Sprintf("%s: begun", a.nameOf()))
	return reply{Instance: sl.number}
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
	se.workers = append(se.workers, g)
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

// maxLogs bounds the messages that wait for an answer, in bytes.
const maxLogs = 16 << 20

// log adds a message to the next answer.
func (se *session) log(p remote.Part) {
	se.logMu.Lock()
	defer se.logMu.Unlock()
	switch was := se.size; {
	case was > maxLogs:
		return
	case was+len(p.Message) > maxLogs:
		se.size = maxLogs + 1
		p = part(partOutput, p.Instance&(1<<partShift-1), []byte("(the host drops further messages up to the end of this call)"))
	default:
		se.size += len(p.Message)
	}
	p.Message = append([]byte(nil), p.Message...)
	se.logs = append(se.logs, p)
}

// logged returns the messages since the last answer.
func (se *session) logged() []remote.Part {
	se.logMu.Lock()
	defer se.logMu.Unlock()
	logs := se.logs
	se.logs, se.size = nil, 0
	return logs
}

func (g *group) post(parts []remote.Part) {
	g.buf = remote.AppendGroup(g.buf[:0], parts)
	g.posted = g.link.Post(g.buf)
}

func (g *group) await() ([]byte, error) {
	if g.posted != nil {
		return nil, g.posted
	}
	return g.link.Await()
}

// run executes the requests of instances and appends the answer to m; nil = the request is not valid.
func (se *session) run(m, content []byte) []byte {
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
			g.post(g.under)
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
	return remote.AppendParts(remote.AppendParts(m, se.logged()), out)
}

// lost appends how a worker has ended, for each instance of a request.
func (g *group) lost(out []remote.Part, err error) []remote.Part {
	var e *fmi.Ended
	if !errors.As(err, &e) {
		e = &fmi.Ended{Reason: err.Error()}
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
	g := sl.group
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

// end ends the session and its workers.
func (se *session) end(why string) {
	se.mu.Lock()
	if se.over {
		se.mu.Unlock()
		return
	}
	se.over = true
	close(se.ended)
	if se.leave != nil {
		se.leave.Stop()
	}
	if se.conn != nil {
		_ = se.conn.Close()
	}
	if !se.busy.IsZero() {
		for _, g := range se.workers {
			g.link.Kill() // an FMU may never return
		}
	}
	se.mu.Unlock()
	if why != "" {
		se.server.o.Log("a run is given up: " + why)
	}
	se.work.Lock() // after the request under way
	defer se.work.Unlock()
	for number := range se.slots {
		se.close(number)
	}
	se.server.forget(se)
}
