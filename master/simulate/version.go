package simulate

import (
	"runtime"
	"runtime/debug"
)

// Platform is the system and the processor, like linux/amd64.
func Platform() string { return runtime.GOOS + "/" + runtime.GOARCH }

// Version is the module version the binary was built from, or its commit.
func Version() string {
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
}
