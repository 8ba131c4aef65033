package fmi

import "github.com/macrostep/macrostep/fmi/internal/fmi2"

// LogMessage is one message of an FMU, or of the binding about it (category
// "macrostep").
type LogMessage struct {
	Instance string
	Status   Status
	Category string // "" if the FMU gave none; it need not be a declared one
	Text     string // formatted, valid UTF-8, variable references replaced by names
}

// OwnCategory is the category of messages that come from the binding itself.
const OwnCategory = fmi2.OwnCategory

// WrongEnvironment is the message of the binding about an FMU that does not hand back
// its componentEnvironment (checklist fmi2 33).
const WrongEnvironment = fmi2.WrongEnvironment

// public returns a message as the caller gets it.
func public(m fmi2.Message) LogMessage {
	return LogMessage{m.Instance, Status(m.Status), m.Category, m.Text}
}
