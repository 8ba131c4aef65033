package record

// CallLog is a file for an [fmi.Trace]. Several goroutines may write to it.
type CallLog struct{ text }

var callsText = textKind{
	what: "the log of calls (--debug calls)", flag: "--debug calls",
	fails:  "--debug calls: the log ends early, but the results are complete",
	region: "calllog", lines: "calllog.lines",
}

// NewCallLog returns a log that Begin creates or replaces at path. Lines are buffered in m;
// nil = ordinary memory.
func NewCallLog(path string, m Memory) *CallLog {
	return &CallLog{text{textKind: callsText, path: path, memory: m}}
}

// Begin creates the file.
func (c *CallLog) Begin() error { return c.create() }

// Write adds a line. It never fails, so that the run continues; Close returns the first
// error.
func (c *CallLog) Write(line []byte) (int, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	_ = c.add(line)
	return len(line), nil
}
