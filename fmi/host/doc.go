// Package host runs instances of FMUs on other machines.
//
// A Server offers the FMUs of its folders, by their hashes, and runs each instance in a worker (package
// fmi/worker). A Client connects to a server; its Launcher makes instances there:
//
//	c, err := host.NewClient("lab7_7447.json", "", host.ClientOptions{})
//	in, err := f.Instantiate("engine", fmi.InstanceOptions{Launcher: c.Launcher(host.Place{})})
//
// # Messages
//
// A connection, over TLS, transports frames, as to a worker. The run sends requests, one at a time, and the host sends one
// answer to each, with the log messages of the FMUs, and before it a sign of life now and then. A request for FMUs holds the
// requests of all instances that wait for an answer, so that their inputs and outputs travel in one message each
// way. The host executes them in as few workers as possible.
//
// If the connection ends, so do its instances. The run makes others over a new one (fmi.Elsewhere).
package host
