// SPDX-License-Identifier: Apache-2.0

package node

import (
	"context"
	"fmt"
	"io"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// Log returns what the containers of a pod have printed, by its kubelet, or why it cannot be had.
func (n *Node) Log(ctx context.Context, pod *corev1.Pod) string { return logOf(ctx, n.Config, pod) }

func logOf(ctx context.Context, config *rest.Config, pod *corev1.Pod) string {
	all, err := kubernetes.NewForConfig(config)
	if err != nil {
		return err.Error()
	}
	var b strings.Builder
	for _, c := range pod.Spec.Containers {
		o := &corev1.PodLogOptions{Container: c.Name, TailLines: ptr.To[int64](1000)}
		raw, err := all.CoreV1().Pods(pod.Namespace).GetLogs(pod.Name, o).DoRaw(ctx)
		b.Write(raw)
		if err != nil {
			fmt.Fprintln(&b, err)
		}
	}
	return b.String()
}

// Dump writes what the pods of the node's cluster are like, and the ends of the logs of those and of the node's own parts.
func (n *Node) Dump(w io.Writer) {
	for _, p := range n.Processes() {
		fmt.Fprintf(w, "--- %s\n%s\n", p.Name, p.Tail(20))
	}
	dump(w, n.Config, n.Client)
}

// Dump writes what the pods of the worker's cluster are like. The logs of its parts are among the node's.
func (w *Worker) Dump(out io.Writer) { dump(out, w.config, w.client) }

func dump(w io.Writer, config *rest.Config, c client.Client) {
	ctx, cancel := context.WithTimeout(context.Background(), 20*time.Second)
	defer cancel()
	list := &corev1.PodList{}
	if err := c.List(ctx, list); err != nil {
		fmt.Fprintln(w, err)
	}
	for _, p := range list.Items {
		log := strings.Split(logOf(ctx, config, &p), "\n")
		fmt.Fprintf(w, "--- %s/%s %s %v\n", p.Namespace, p.Name, p.Status.Phase, p.Status.ContainerStatuses)
		fmt.Fprintln(w, strings.Join(log[max(0, len(log)-40):], "\n"))
	}
	events := &corev1.EventList{}
	if err := c.List(ctx, events); err == nil {
		for _, e := range events.Items {
			if e.Type != corev1.EventTypeNormal {
				fmt.Fprintf(w, "%s %s/%s: %s: %s\n", e.InvolvedObject.Kind, e.InvolvedObject.Namespace, e.InvolvedObject.Name, e.Reason, e.Message)
			}
		}
	}
}
