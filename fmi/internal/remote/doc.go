// Package remote makes the calls of an instance in another process: Client is the end where the
// run is, Host the end where the FMU is. A Link carries the messages between them.
//
// Records of calls travel (see native.Record), with what their arguments point to. If the
// process ends, Client starts another one and brings the instance there to where it was
// (Client.Keep).
package remote
