package record

// CallLog is the file that an [fmi.Trace] writes to. Several goroutines may write to it.
type CallLog struct{ text }

var callsText = textKind{
	what: "the log of calls (--log-fmi-calls)", flag: "--log-fmi-calls", fails: "--log-fmi-calls: the log ends early, and the results are whole",
	region: "calllog", lines: "calllog.lines",
}

// NewCallLog returns a log that creates or replaces the file at path when Begin is called.
// Lines wait in m to be written; nil = ordinary memory.
func NewCallLog(path string, m Memory) *CallLog {
	return &CallLog{text{textKind: callsText, path: path, memory: m}}
}

// Begin creates the file.
func (c *CallLog) Begin() error { return c.create() }

// Write adds a line. It does not fail, so that the run goes on: Close returns the first
// error.
func (c *CallLog) Write(line []byte) (int, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	_ = c.add(line)
	return len(line), nil
}
