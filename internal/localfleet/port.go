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
	ports map[int]bool
}

// FreePort returns a port on loopback that nothing listens on, and that this process has not had before: most parts cannot
// choose one themselves, or cannot tell which they chose.
func FreePort() (int, error) {
	given.Lock()
	defer given.Unlock()
	if given.ports == nil {
		given.ports = map[int]bool{}
	}
	for range lastPort - firstPort {
		port := firstPort + rand.IntN(lastPort-firstPort)
		if given.ports[port] {
			continue
		}
		l, err := net.Listen("tcp", fmt.Sprintf("127.0.0.1:%d", port))
		if err != nil {
			continue
		}
		given.ports[port] = true
		return port, l.Close()
	}
	return 0, errors.New("no free port on 127.0.0.1")
}
