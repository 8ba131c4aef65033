package simulate

import (
	"runtime"
	"runtime/debug"
	"sync"
)

// Platform returns operating system and architecture, such as linux/amd64.
func Platform() string { return runtime.GOOS + "/" + runtime.GOARCH }

// Version returns the module version of the binary, or its commit.
func Version() string { return version() }

// version is read once, because every manifest has it.
var version = sync.OnceValue(func() string {
	info, ok := debug.ReadBuildInfo()
	if !ok {
		return "unknown"
	}
	if v := info.Main.Version; v != "" && v != "(devel)" {
		return v
	}
	revision, modified := "devel", ""
	for _, s := range info.Settings {
		switch {
		case s.Key == "vcs.revision":
			revision = "devel-" + s.Value[:min(12, len(s.Value))]
		case s.Key == "vcs.modified" && s.Value == "true":
			modified = "+modified"
		}
	}
	return revision + modified
})
