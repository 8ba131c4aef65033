package process

import (
	"fmt"
	"os"
	"sync"
)

// firstImage is the file of the program when it was first asked for.
var firstImage = sync.OnceValues(func() (os.FileInfo, error) {
	path, err := os.Executable()
	if err != nil {
		return nil, err
	}
	return os.Stat(path)
})

// Image returns the name of the running program and the path that starts it once more.
// The two differ, or there is an error, if an update has removed or replaced the file.
func Image() (name, path string, err error) {
	if name, err = os.Executable(); err != nil {
		return "", "", err
	}
	now, err := os.Stat(name)
	if running, failed := os.Stat(runningImage); runningImage != "" && failed == nil {
		if err != nil || !os.SameFile(now, running) {
			return name, runningImage, nil
		}
		return name, name, nil
	}
	if err != nil {
		return "", "", fmt.Errorf("the file of the program is gone, and the program has to start itself once more: %w; put it back, or start again", err)
	}
	first, err := firstImage()
	if err == nil && (!os.SameFile(first, now) || first.Size() != now.Size() || !first.ModTime().Equal(now.ModTime())) {
		return "", "", fmt.Errorf("%s was replaced by another version while it runs, and it has to start itself once more; start again", name)
	}
	return name, name, nil
}
