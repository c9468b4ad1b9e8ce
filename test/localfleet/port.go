// SPDX-License-Identifier: Apache-2.0

package localfleet

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"net"
	"sync"
)

// firstPort to lastPort lie below the range from which the usual systems give ports to outgoing connections and to those who
// ask for any: nobody but another fleet takes one between FreePort and the start of the part that shall have it.
const (
	firstPort = 15000
	lastPort  = 32000
)

var given struct {
	sync.Mutex
	ports []net.PacketConn
}

// FreePort returns a port on loopback that nothing listens on, and that no fleet of this machine has had before: most parts cannot
// choose one themselves, or cannot tell which they chose. Until the part listens there, and while it is restarted, this process holds the
// UDP port of the same number, which says to every other fleet that the port is taken. The kernel gives it back when this process ends.
func FreePort() (int, error) {
	given.Lock()
	defer given.Unlock()
	for range lastPort - firstPort {
		port := firstPort + rand.IntN(lastPort-firstPort)
		address := fmt.Sprintf("127.0.0.1:%d", port)
		mark, err := net.ListenPacket("udp", address)
		if err != nil {
			continue
		}
		l, err := net.Listen("tcp", address)
		if err != nil {
			_ = mark.Close()
			continue
		}
		given.ports = append(given.ports, mark)
		return port, l.Close()
	}
	return 0, errors.New("no free port on 127.0.0.1")
}
