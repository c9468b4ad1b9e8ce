// SPDX-License-Identifier: Apache-2.0

package expect

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// kubectlKinds are the kinds that Kubectl knows, by the names that are printed in commands.
var kubectlKinds = map[string]schema.GroupVersionKind{
	"secret":                               {Version: "v1", Kind: "Secret"},
	"namespace":                            {Version: "v1", Kind: "Namespace"},
	"clusterrolebinding":                   {Group: "rbac.authorization.k8s.io", Version: "v1", Kind: "ClusterRoleBinding"},
	"addonset":                             {Group: "chandler.dev", Version: "v1alpha1", Kind: "AddonSet"},
	"clreg":                                {Group: "chandler.dev", Version: "v1alpha1", Kind: "ClusterRegistration"},
	"tenantcontrolplane.kamaji.clastix.io": {Group: "kamaji.clastix.io", Version: "v1alpha1", Kind: "TenantControlPlane"},
}

// Kubectl follows a command that somebody was told to type, to the letter: `kubectl label`, `annotate` and `delete`, with their
// refusals. What comes before the command, on its line, is left out.
func Kubectl(t *testing.T, c client.Client, line string) {
	t.Helper()
	_, command, found := strings.Cut(line, "kubectl ")
	if !found {
		t.Fatalf("no command of kubectl: %s", line)
	}
	if err := kubectl(t.Context(), c, strings.Fields(command)); err != nil {
		t.Fatalf("kubectl %s: %v", command, err)
	}
}

func kubectl(ctx context.Context, c client.Client, words []string) error {
	var namespace string
	var rest []string
	flags := map[string]bool{}
	for i := 0; i < len(words); i++ {
		switch {
		case words[i] == "-n" && i+1 < len(words):
			i++
			namespace = words[i]
		case strings.HasPrefix(words[i], "--"):
			flags[words[i]] = true
		default:
			rest = append(rest, words[i])
		}
	}
	if len(rest) < 3 {
		return fmt.Errorf("too few words: %q", rest)
	}
	gvk, known := kubectlKinds[rest[1]]
	if !known {
		return fmt.Errorf("the server doesn't have a resource type %q", rest[1])
	}
	object := func(name string) *unstructured.Unstructured {
		u := &unstructured.Unstructured{}
		u.SetGroupVersionKind(gvk)
		u.SetNamespace(namespace)
		u.SetName(name)
		return u
	}
	switch rest[0] {
	case "delete":
		for _, name := range rest[2:] {
			err := c.Delete(ctx, object(name))
			if flags["--ignore-not-found"] {
				err = client.IgnoreNotFound(err)
			}
			if err != nil {
				return err
			}
		}
		return nil
	case "label", "annotate":
		first := slices.IndexFunc(rest, func(word string) bool { return strings.Contains(word, "=") })
		if first < 0 {
			return errors.New("at least one label update is required")
		}
		for _, name := range rest[2:first] {
			if err := mark(ctx, c, object(name), rest[0], rest[first:], flags["--overwrite"]); err != nil {
				return err
			}
		}
		return nil
	}
	return fmt.Errorf("unknown command %q", rest[0])
}

// mark sets labels or annotations, KEY=VALUE each. One that is there with another value is not overwritten unless that is said.
func mark(ctx context.Context, c client.Client, u *unstructured.Unstructured, verb string, pairs []string, overwrite bool) error {
	if err := c.Get(ctx, client.ObjectKeyFromObject(u), u); err != nil {
		return err
	}
	before, fields := u.DeepCopy(), []string{"metadata", map[string]string{"label": "labels", "annotate": "annotations"}[verb]}
	for _, pair := range pairs {
		key, value, ok := strings.Cut(pair, "=")
		if !ok {
			return fmt.Errorf("%q is no pair of a key and a value", pair)
		}
		all, _, err := unstructured.NestedStringMap(u.Object, fields...)
		if err != nil {
			return err
		}
		if is, there := all[key]; there && is != value && !overwrite {
			return fmt.Errorf("'%s' already has a value (%s), and --overwrite is false", key, is)
		}
		if err := unstructured.SetNestedField(u.Object, value, slices.Concat(fields, []string{key})...); err != nil {
			return err
		}
	}
	return c.Patch(ctx, u, client.MergeFrom(before))
}
