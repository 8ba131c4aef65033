package fmi

import (
	"github.com/macrostep/macrostep/fmi/internal/capi"
	"github.com/macrostep/macrostep/fmi/internal/native"
)

// LogMessage is a message of an FMU, or of this package about it (category
// OwnCategory).
type LogMessage struct {
	Instance string
	Status   Status
	Category string // "" if none; it may be undeclared
	Text     string // formatted, valid UTF-8, variable references replaced by names
}

// OwnCategory is the category of messages of this package.
const OwnCategory = capi.OwnCategory

// WrongEnvironment is the message about an FMU that passes a wrong
// componentEnvironment to the logger (checklist fmi2 33).
const WrongEnvironment = capi.WrongEnvironment

// public converts a message for the caller.
func public(m native.Message) LogMessage {
	return LogMessage{m.Instance, Status(m.Status), m.Category, m.Text}
}
