// SPDX-License-Identifier: Apache-2.0

package localfleet

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"net"
	"sync"
)

// firstPort to lastPort are below the range from which the usual systems take ports for outgoing connections and for
// listeners that ask for any port. So only another fleet could take one between FreePort and the start of the part
// that gets it.
const (
	firstPort = 15000
	lastPort  = 32000
)

var given struct {
	sync.Mutex
	ports []net.PacketConn
}

// FreePort returns a port on loopback that nothing listens on, and that no fleet of this machine has had before. Most
// parts cannot choose a port themselves, or cannot tell which they chose. Until the part listens, and while it
// restarts, this process holds the UDP port of the same number, which tells every other fleet that the port is taken.
// The kernel frees it when this process ends.
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
