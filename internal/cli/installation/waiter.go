// SPDX-License-Identifier: Apache-2.0

package installation

import (
	"cmp"
	"context"
	"fmt"
	"io"
	"slices"
	"strings"
	"time"

	"github.com/fluxcd/cli-utils/pkg/kstatus/status"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/chandler-hub/chandler/internal/cli/command"
	"github.com/chandler-hub/chandler/internal/cli/resource"
	"github.com/chandler-hub/chandler/internal/manifests"
)

// Waiter waits until objects are as they should be, and says what it waits for.
type Waiter struct {
	Client  client.Client
	Out     io.Writer
	Timeout time.Duration
	Pause   time.Duration // between two looks; 0 for the usual one
}

// Until looks until that is done. look returns what it waits for; "" for nothing more. Each new text is a line.
func (w *Waiter) Until(ctx context.Context, look func(context.Context) (string, error)) error {
	within, cancel := command.Limited(ctx, w.Timeout)
	defer cancel()
	tick := time.NewTicker(cmp.Or(w.Pause, 500*time.Millisecond))
	defer tick.Stop()
	for said := ""; ; {
		text, err := look(within)
		if err == nil && text == "" {
			return nil
		}
		if err != nil && within.Err() == nil {
			return err
		}
		if text != "" && text != said {
			said = text
			fmt.Fprintln(w.Out, text)
		}
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-within.Done():
			return fmt.Errorf("after %s it still waits: %s", w.Timeout, said)
		case <-tick.C:
		}
	}
}

// Current waits until objects are Current in the words of kstatus: a CRD is established, a Deployment is rolled out.
func (w *Waiter) Current(ctx context.Context, objects []*unstructured.Unstructured) error {
	return w.Until(ctx, func(ctx context.Context) (string, error) {
		for _, o := range objects {
			u := &unstructured.Unstructured{}
			u.SetGroupVersionKind(o.GroupVersionKind())
			if err := w.Client.Get(ctx, client.ObjectKeyFromObject(o), u); err != nil {
				return "", fmt.Errorf("read %s: %w", resource.Called(o), err)
			}
			result, err := status.Compute(u)
			if err != nil {
				return "", fmt.Errorf("%s: %w", resource.Called(o), err)
			}
			switch result.Status {
			case status.CurrentStatus:
			case status.FailedStatus:
				return "", fmt.Errorf("%s: %s%s", resource.Called(o), result.Message, w.why(ctx, u))
			default:
				return fmt.Sprintf("%s: waits: %s%s", resource.Called(o), result.Message, w.why(ctx, u)), nil
			}
		}
		return "", nil
	})
}

// why says which of a Deployment's pods do not run, and why.
func (w *Waiter) why(ctx context.Context, u *unstructured.Unstructured) string {
	if u.GetKind() != "Deployment" {
		return ""
	}
	pods := &corev1.PodList{}
	selector := client.MatchingLabels{"app.kubernetes.io/name": manifests.Name}
	if err := w.Client.List(ctx, pods, client.InNamespace(u.GetNamespace()), selector); err != nil {
		return ""
	}
	var waits []string
	for i := range pods.Items {
		for _, s := range pods.Items[i].Status.ContainerStatuses {
			if s.State.Waiting != nil && s.State.Waiting.Reason != "ContainerCreating" {
				waits = append(waits, fmt.Sprintf("pod %s: %s", pods.Items[i].Name, s.State.Waiting.Reason))
			}
		}
	}
	if len(waits) == 0 {
		return ""
	}
	slices.Sort(waits)
	return " (" + strings.Join(waits, ", ") + ")"
}
