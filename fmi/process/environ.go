package process

import "os"

// traceback is the environment variable for the amount of output when a Go program crashes.
const traceback = "GOTRACEBACK"

// noTraceback is its value for a process that prints no stacks of goroutines.
const noTraceback = "none"

// Environment returns the environment for a process of this program: that of this process, with a value that
// TakeVariable returns there. If it crashes, it prints no stacks of goroutines, unless the user has set GOTRACEBACK.
func Environment(variable, value string) []string {
	env := append(os.Environ(), variable+"="+value)
	if os.Getenv(traceback) == "" {
		env = append(env, traceback+"="+noTraceback)
	}
	return env
}

// TakeVariable returns the value that this process was given, and removes what Environment has added, so that foreign
// code and its programs find the environment of the user.
func TakeVariable(variable string) string {
	value := os.Getenv(variable)
	_ = os.Unsetenv(variable) // the name is valid
	if os.Getenv(traceback) == noTraceback {
		_ = os.Unsetenv(traceback)
	}
	return value
}
