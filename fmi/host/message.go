package host

import (
	"encoding/json"
	"fmt"
	"runtime"

	"github.com/macrostep/macrostep/fmi"
	"github.com/macrostep/macrostep/fmi/diag"
	"github.com/macrostep/macrostep/fmi/internal/remote"
)

// version is that of the messages here, and of the requests for FMUs. Both sides need the same.
var version = fmt.Sprintf("2.%d", remote.Version)

// hello begins a connection.
type hello struct {
	Version  string
	Program  string  // version of the program, for messages
	Token    string  `json:",omitempty"`
	Patience float64 // s, how long the client waits for a sign of the host
	Instead  string  `json:",omitempty"` // session of the client that is lost, and ends now
}

// reply answers everything but a request for FMUs.
type reply struct {
	Error  string `json:",omitempty"` // "" = it is done
	Remedy string `json:",omitempty"`

	Session  string     `json:",omitempty"` // to hello
	About    *Status    `json:",omitempty"` // to hello and List
	Offers   []Offer    `json:",omitempty"` // to List
	Instance uint64     `json:",omitempty"` // to Open
	Missing  bool       `json:",omitempty"` // to Open: the FMU must be sent
	Ended    *fmi.Ended `json:",omitempty"` // to Close: how the worker ended, if not by itself
}

// ask is a request that is not for FMUs; at most one field is set.
type ask struct {
	Open  *openAsk
	Close *uint64 // an instance
	List  bool
	Send  *sendAsk
}

// openAsk asks for a new instance.
type openAsk struct {
	Instance, Model string
	FMU, Hash       string  // name of the file, hash
	Apart           bool    // in a worker of its own
	Timeout         float64 // s, of a call; 0 = that of the host
	Memory          uint64  // bytes; 0 = that of the host
}

// sendAsk announces an FMU, which follows in pieces.
type sendAsk struct {
	Name, Hash string
	Tree       bool // the FMU is a folder, in an archive
	Size       int64
}

// Status describes a host.
type Status struct {
	ID           string `json:"id"` // of this start of the host
	Name         string `json:"name"`
	Platform     string `json:"platform"` // for example windows/amd64
	Program      string `json:"program"`  // version
	Instances    int    `json:"instances"`
	MaxInstances int    `json:"max_instances"` // 0 = unlimited
	Accepts      bool   `json:"accepts"`       // any FMU
}

// Offer is an FMU that a host can run.
type Offer struct {
	Name  string `json:"name"` // of the file or folder
	Model string `json:"model"`
	Hash  string `json:"hash"`
}

// platform is that of this program.
const platform = runtime.GOOS + "/" + runtime.GOARCH

// longestText bounds a text of the other side in bytes.
const longestText = 2000

// shown returns a text of the other side for messages.
func shown(text string) string { return diag.OneLine(text, longestText) }

func refusal(remedy, format string, args ...any) reply {
	return reply{Error: fmt.Sprintf(format, args...), Remedy: remedy}
}

// The content of kindRun, kindAnswer and kindSaid is a list of remote.Parts. In the latter two the upper bits of the
// number of an instance hold the kind of the part.
const (
	partAnswer uint64 = iota // of an instance to its request
	partLog                  // a message of an instance
	partOutput               // a line that an FMU has printed
	partEnded                // JSON of fmi.Ended: the worker of the instance has ended

	partShift = 56
)

func part(kind, number uint64, content []byte) remote.Part {
	return remote.Part{Instance: number | kind<<partShift, Message: content}
}

// document makes a message of a kind whose content is JSON.
func document(kind uint64, v any) []byte {
	return remote.EndFrame(append(remote.BeginFrame(nil, kind), encoded(v)...))
}

func encoded(v any) []byte {
	b, err := json.Marshal(v)
	if err != nil {
		panic(err) // all types here can be encoded
	}
	return b
}

func endedPart(number uint64, e *fmi.Ended) remote.Part { return part(partEnded, number, encoded(e)) }
