package fmuslave

import (
	"errors"
	"fmt"

	"github.com/macrostep/macrostep/fmi"
)

// Sandbox is where instances run that must not change the working folder: a process in a copy of it.
type Sandbox struct {
	Launcher fmi.Launcher
	// Dir returns the copy, or an empty folder and the reason (workdir.Copy).
	Dir func() (path, bare string, err error)
}

// beside returns the configuration of an instance beside that of the run, for a test, with the purpose in its name. Its log
// messages are only for debugging, and on a host it has a process of its own. The error says why there can be no such instance.
func (s *Slave) beside(purpose string) (Config, error) {
	c := s.config
	if host, ok := c.Options.Launcher.(fmi.Elsewhere); ok {
		c.Options.Launcher = host.Apart()
	}
	c.Name = fmt.Sprintf("%s (%s)", c.Name, purpose)
	c.Options.Log, c.Restarts, c.Aside = quiet(c.Options.Log), 0, true
	return c, c.Place()
}

// Place puts an instance into the sandbox unless it runs on a host, which gives it a folder of its own, or its FMU is known
// to leave the working folder as it is. New does so with Sandboxed.
func (c *Config) Place() (err error) {
	if _, host := c.Options.Launcher.(fmi.Elsewhere); host {
		return nil
	}
	writes, known := c.store().Writes(c.Options.LoggingOn)
	switch {
	case known && !writes, c.Sandbox == nil && !known:
		return nil
	case c.Sandbox == nil:
		return errors.New("the FMU writes files in the working folder, which another instance would overwrite, " +
			"and there is no launcher of processes, which could run in another folder")
	}
	if c.Options.Dir, c.bare, err = c.Sandbox.Dir(); c.Options.Launcher == nil {
		c.Options.Launcher = c.Sandbox.Launcher
	}
	return err
}

// note logs a note about the FMU.
func (s *Slave) note(text string) {
	if log := s.config.Options.Log; log != nil {
		log(fmi.LogMessage{Instance: s.config.Name, Status: fmi.StatusOK, Category: fmi.OwnCategory, Text: text})
	}
}

// untested returns why a test on an instance with a configuration that failed proves nothing, "" if it does.
func (c *Config) untested(failed error) string {
	if failed == nil || c.bare == "" {
		return ""
	}
	return fmt.Sprintf("the test fails in an empty folder (%v), perhaps for want of files of the working folder, of which no copy can be "+
		"made: %s", failed, c.bare)
}

// InFolder reports whether the instance runs in the working folder.
func (s *Slave) InFolder() bool {
	_, host := s.config.Options.Launcher.(fmi.Elsewhere)
	return !host && s.config.Options.Dir == ""
}

// Writes reports whether the FMU, with its settings, changed the working folder in an earlier run (see KeepWrites).
func (s *Slave) Writes() (writes, known bool) {
	return s.config.store().Writes(s.config.Options.LoggingOn)
}

// KeepWrites stores whether a run changed it.
func (s *Slave) KeepWrites(writes bool) {
	s.config.store().KeepWrites(s.config.Options.LoggingOn, writes)
}
