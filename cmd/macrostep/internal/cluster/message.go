package cluster

import (
	"bytes"
	"encoding/json"
	"errors"
	"regexp"
	"strings"

	"github.com/macrostep/macrostep/master/study"
)

// Operations of a coordinator, the last tokens of its subjects.
const (
	opStudies = "studies"
	opJoin    = "join"
	opFile    = "file"
	opNext    = "next"
	opHold    = "hold"
	opRelease = "release"
	opUpload  = "upload"
)

const (
	subjects = "macrostep."
	inboxes  = "_INBOX."
)

// subject is that of an operation for a worker; *.* is any worker.
func subject(worker, identity, op string) string {
	return subjects + worker + "." + identity + "." + op
}

// request is what a worker asks, and answer what it gets. Bytes of files follow them in a message.
type request struct {
	Version string `json:"version,omitempty"` // join: of macrostep
	Host    string `json:"host,omitempty"`    // join: name of the machine

	Engine  int            `json:"engine,omitempty"`
	Variant *study.Variant `json:"variant,omitempty"`
	Seal    string         `json:"seal,omitempty"` // of the variant
	Row     *study.Row     `json:"row,omitempty"`
	Death   string         `json:"death,omitempty"`
	Once    string         `json:"once,omitempty"`  // differs from result to result
	Kept    []sent         `json:"kept,omitempty"`  // files of the run, which are uploaded
	Large   string         `json:"large,omitempty"` // hash of the row, which is uploaded

	Hash string `json:"hash,omitempty"` // file, upload
	At   int64  `json:"at,omitempty"`   // offset of the piece
	Most int    `json:"most,omitempty"` // file: bytes of the piece
}

type answer struct {
	Study   string         `json:"study,omitempty"`
	Index   string         `json:"index,omitempty"` // join: hash of the list of files
	Variant *study.Variant `json:"variant,omitempty"`
	Seal    string         `json:"seal,omitempty"`
	End     int64          `json:"end,omitempty"`     // upload: where the file ends now
	Needed  bool           `json:"needed,omitempty"`  // hold: the row is
	Over    bool           `json:"over,omitempty"`    // the study is
	Join    bool           `json:"join,omitempty"`    // the worker is not known: it must join first
	Missing bool           `json:"missing,omitempty"` // next: an upload is not there, or damaged
	Again   bool           `json:"again,omitempty"`   // the request cannot be met now
	Refused string         `json:"refused,omitempty"` // why the worker must leave
	data    []byte         // file
}

// pack makes a message of a document, one line, and bytes.
func pack(document any, data []byte) ([]byte, error) {
	text, err := json.Marshal(document)
	if err != nil {
		return nil, err
	}
	return append(append(text, '\n'), data...), nil
}

// unpack reads a message.
func unpack(message []byte, document any) (data []byte, err error) {
	text, data, ok := bytes.Cut(message, []byte{'\n'})
	if !ok {
		return nil, errors.New("a message breaks off")
	}
	return data, json.Unmarshal(text, document)
}

// largestPiece bounds the bytes of a file in a message.
const largestPiece = 512 << 10

// tokens match names that can be a part of a subject.
var tokens = regexp.MustCompile(`^[A-Za-z0-9_-]{1,100}$`)

// hashes match SHA-256.
var hashes = regexp.MustCompile(`^[0-9a-f]{64}$`)

// senderOf returns the user and the worker that have sent to a subject; the worker has the name USER.WORKER.
func senderOf(subject string) (user, worker string) {
	parts := strings.SplitN(strings.TrimPrefix(subject, subjects), ".", 3)
	if len(parts) < 3 || !tokens.MatchString(parts[0]) || !tokens.MatchString(parts[1]) {
		return "", ""
	}
	return parts[0], parts[0] + "." + parts[1]
}
