// SPDX-License-Identifier: Apache-2.0

package live

import (
	"errors"
	"fmt"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
)

// ErrNoHub: an API server has no kinds of ours.
var ErrNoHub = errors.New("it is not a Chandler hub")

// NoHub is the error that an API server does not have these kinds, which a hub has.
func NoHub(kinds string) error {
	return fmt.Errorf("this API server has no %s, so %w: choose another one by --context or --kubeconfig", kinds, ErrNoHub)
}

// Refused says why kinds could not be listed in a namespace; an empty one means all.
func Refused(kinds, namespace string, err error) error {
	switch {
	case meta.IsNoMatchError(err):
		return NoHub(kinds)
	case apierrors.IsForbidden(err) && namespace == "":
		return fmt.Errorf("list the %s of all namespaces: %w; write -n NAMESPACE for a namespace that you may read", kinds, err)
	case namespace != "":
		return fmt.Errorf("list the %s in namespace %s: %w", kinds, namespace, err)
	}
	return fmt.Errorf("list the %s: %w", kinds, err)
}

// ErrSeveral: a name is that of several objects.
var ErrSeveral = errors.New("the name is not enough")

// Several is ErrSeveral with its own text.
type Several string

func (s Several) Error() string        { return string(s) }
func (s Several) Is(target error) bool { return target == ErrSeveral }

// ErrWrong: what is asked for contradicts itself, or is no name, whatever there is on the hub.
var ErrWrong = errors.New("the question is wrong")

// wrong is ErrWrong with its own text.
type wrong string

func (w wrong) Error() string        { return string(w) }
func (w wrong) Is(target error) bool { return target == ErrWrong }

// MaxNames is how many names an error lists.
const MaxNames = 20
