//go:build !linux

package host

import "net"

func quick(c *net.TCPConn) net.Conn { return c }
