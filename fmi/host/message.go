package host

import (
	"encoding/json"
	"fmt"
	"runtime"

	"github.com/macrostep/macrostep/fmi"
	"github.com/macrostep/macrostep/fmi/internal/remote"
)

// Versions of the messages that this program speaks, from minVersion to version. A host chooses the highest that
// both speak. The requests for FMUs have a version of their own.
const (
	minVersion = 1
	version    = 1
)

// hello begins a connection.
type hello struct {
	Min, Max int    // versions
	Calls    int    // version of the requests for FMUs
	Program  string // version of the program, for messages
	Token    string `json:",omitempty"`
	Session  string `json:",omitempty"` // to go on with; "" = a new one
	Grace    float64
}

// reply answers a hello or an ask.
type reply struct {
	Code   code   `json:",omitempty"` // "" = it is done
	Error  string `json:",omitempty"`
	Remedy string `json:",omitempty"`

	// To hello.
	Version  int     `json:",omitempty"`
	Session  string  `json:",omitempty"`
	Received uint64  `json:",omitempty"` // number of the last request of the session
	About    *Status `json:",omitempty"`

	Instance uint64  `json:",omitempty"` // to Open
	Missing  bool    `json:",omitempty"` // to Open: the FMU must be sent
	Offers   []Offer `json:",omitempty"` // to List

	Ended *fmi.Ended `json:",omitempty"` // to Close: how the worker ended, if not by itself

	Parts []remote.Part `json:",omitempty"` // messages of instances, as in kindAnswer
}

// code is the kind of an error.
type code string

const (
	codeVersion code = "version"
	codeToken   code = "token"
	codeSession code = "session" // it has ended
	codeUnknown code = "unknown FMU"
	codeLimit   code = "limit"
	codeRefused code = "refused"
)

// ask is a request that is not for FMUs; one field is set.
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

// sendAsk sends an FMU in pieces.
type sendAsk struct {
	Name, Hash string
	Tree       bool // the FMU is a folder, in an archive
	At         int64
	Piece      []byte
	Last       bool
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

func errorReply(c code, remedy, format string, args ...any) reply {
	return reply{Code: c, Error: fmt.Sprintf(format, args...), Remedy: remedy}
}

// The content of kindRun and kindAnswer is a list of remote.Parts. In answers the upper bits of the number of the
// instance say what the part is.
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

func document(v any) []byte {
	b, err := json.Marshal(v)
	if err != nil {
		panic(err) // all types here can be encoded
	}
	return b
}

func endedPart(number uint64, e *fmi.Ended) remote.Part { return part(partEnded, number, document(e)) }
