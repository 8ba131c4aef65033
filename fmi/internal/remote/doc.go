// Package remote makes the calls of an instance in another process. Client is in the process of
// the run, Host in that of the FMU. A Link transports messages between them.
//
// The messages contain records of calls (see native.Record) with the memory of their arguments.
// If the process ends, Client can start another one and restore the instance (Client.Keep).
package remote
