//go:build !linux

package host

import "net"

func quick(c net.Conn) net.Conn { return c }
