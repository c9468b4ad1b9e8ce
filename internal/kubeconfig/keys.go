// SPDX-License-Identifier: Apache-2.0

package kubeconfig

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"github.com/chandler-hub/chandler/internal/status"
)

// DefaultKeys is the order in which the keys of a Secret are tried if none is named. After them comes the key of a
// Secret that has only one. The first two are Flux's own (fluxcd/pkg runtime/client/impersonator.go). Then come
// HyperShift, Crossplane and Gardener (kubeconfig), vcluster (config) and Kamaji, whose *.svc keys reach the API
// server from inside the management cluster. The hub copies the chosen key to "value", so that Flux needs no key at
// all.
var DefaultKeys = []string{
	"value", "value.yaml", "kubeconfig", "config", "super-admin.svc", "admin.svc", "admin.conf", "kubeconfig.yaml",
}

// keyNamesShown bounds how many key names a message lists.
const keyNamesShown = 10

// PickKey returns the key of data that holds the kubeconfig. If want names a key, it is used or missing: as in Flux,
// there is no fallback. Otherwise the first key of order that exists is taken. If order is empty, PickKey tries
// DefaultKeys, and then the key of a Secret with only one. Only the existence of a key decides, never its value, so
// that a value that is blank for a moment does not redirect the hub to another cluster. The error is an *Error with
// ReasonKeyNotFound. It lists names of keys, never values.
func PickKey(data map[string][]byte, want string, order []string) (string, error) {
	if want != "" {
		if _, ok := data[want]; ok {
			return want, nil
		}
		return "", keyNotFound(data, fmt.Sprintf("the Secret has no key %q", want))
	}
	defaults := len(order) == 0
	if defaults {
		order = DefaultKeys
	}
	for _, key := range order {
		if _, ok := data[key]; ok {
			return key, nil
		}
	}
	if defaults && len(data) == 1 {
		for key := range data {
			return key, nil
		}
	}
	return "", keyNotFound(data, "the Secret has none of the keys "+strings.Join(order, ", "))
}

// Keys returns the keys of data that are tried for the kubeconfig, in their order: those of candidates that exist or, without candidates,
// the one that PickKey takes. The error is that of PickKey.
func Keys(data map[string][]byte, want string, candidates []string) ([]string, error) {
	if len(candidates) > 0 {
		want = ""
	}
	key, err := PickKey(data, want, candidates)
	if err != nil {
		return nil, err
	}
	if len(candidates) == 0 {
		return []string{key}, nil
	}
	return slices.DeleteFunc(slices.Clone(candidates), func(key string) bool { _, there := data[key]; return !there }), nil
}

// FluxKey returns the key that Flux takes of a Secret, whether it is there or not: the one that is named, else value, and value.yaml
// if there is no value.
func FluxKey(data map[string][]byte, named string) string {
	if key, err := PickKey(data, named, DefaultKeys[:2]); err == nil {
		return key
	}
	return cmp.Or(named, DefaultKeys[0])
}

func keyNotFound(data map[string][]byte, what string) error {
	names := make([]string, 0, len(data))
	for name := range data {
		names = append(names, name)
	}
	slices.Sort(names)
	has := "it is empty"
	if len(names) > 0 {
		has = "it has " + status.List(names, keyNamesShown)
	}
	return &Error{Reason: ReasonKeyNotFound, Message: what + " (" + has + "); name the key that holds the kubeconfig"}
}
