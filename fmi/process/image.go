package process

import (
	"fmt"
	"os"
	"sync"
)

// firstImage is the file of the program at the first call.
var firstImage = sync.OnceValues(func() (os.FileInfo, error) {
	path, err := os.Executable()
	if err != nil {
		return nil, err
	}
	return os.Stat(path)
})

// Image returns the name of the running program and a path that starts it again. They differ, or
// there is an error, if an update has removed or replaced the file.
func Image() (name, path string, err error) {
	if name, err = os.Executable(); err != nil {
		return "", "", fmt.Errorf("cannot start the program again, because its file is unknown: %w; on Linux, macrostep needs /proc "+
			"(mount -t proc proc /proc)", err)
	}
	now, err := os.Stat(name)
	if running, failed := os.Stat(runningImage); runningImage != "" && failed == nil {
		if err != nil || !os.SameFile(now, running) {
			return name, runningImage, nil
		}
		return name, name, nil
	}
	if err != nil {
		return "", "", fmt.Errorf("cannot start the program again, because its file has been removed: %w; "+
			"restore the file, or start the program again", err)
	}
	first, err := firstImage()
	if err == nil && (!os.SameFile(first, now) || first.Size() != now.Size() || !first.ModTime().Equal(now.ModTime())) {
		return "", "", fmt.Errorf("cannot start %s again, because its file has been replaced by another version; "+
			"start the program again", name)
	}
	return name, name, nil
}
