// SPDX-License-Identifier: Apache-2.0

package manifests_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/chandler-hub/chandler/config"
	"github.com/chandler-hub/chandler/internal/manifests"
	"github.com/chandler-hub/chandler/internal/must"
)

func build(t *testing.T, o manifests.Options) []*unstructured.Unstructured {
	t.Helper()
	return must.Get(manifests.Build(config.Files, o)).Or(t)
}

// TestOrder: what others need comes first.
func TestOrder(t *testing.T) {
	var phases []manifests.Phase
	for _, u := range build(t, manifests.Options{Namespace: "chandler-system", Policies: true}) {
		phases = append(phases, manifests.PhaseOf(u.GetKind()))
	}
	if !slices.IsSorted(phases) || phases[0] != manifests.Definitions || phases[len(phases)-1] != manifests.Hub {
		t.Errorf("the phases are %v", phases)
	}
	for _, u := range build(t, manifests.Options{Namespace: "chandler-system"}) {
		if strings.HasPrefix(u.GetKind(), "ValidatingAdmission") {
			t.Errorf("%s %s is there without policies", u.GetKind(), u.GetName())
		}
	}
}

// TestNames: of the namespaces that config/ has, none is left.
func TestNames(t *testing.T) {
	objects := build(t, manifests.Options{Namespace: "platform", FluxNamespace: "flux", Image: "example.org/hub:v1", Replicas: 3, Policies: true,
		Args: []string{"--hub-id=eu", "--platform-namespaces=a,platform"}})
	seen := map[string]string{}
	for _, u := range objects {
		text := fmt.Sprint(u.Object)
		seen[u.GetKind()+" "+u.GetName()] = text
		if u.GetKind() == "CustomResourceDefinition" || u.GetName() == "chandler-teams-of-flux" {
			continue
		}
		for _, other := range []string{"chandler-system", "serviceaccounts:flux-system", "metadata.name:flux-system"} {
			if strings.Contains(text, other) {
				t.Errorf("%s %s speaks of %s", u.GetKind(), u.GetName(), other)
			}
		}
	}
	for object, want := range map[string]string{
		"Namespace platform":                                "enforce:restricted",
		"Deployment chandler":                               "image:example.org/hub:v1",
		"ClusterRoleBinding chandler-hub":                   "namespace:platform",
		"ValidatingAdmissionPolicy chandler-generated":      "['system:serviceaccount:platform:chandler']",
		"ValidatingAdmissionPolicyBinding chandler-teams-a": "namespace:a",
		"NetworkPolicy chandler":                            "kubernetes.io/metadata.name:flux",
	} {
		if !strings.Contains(seen[object], want) {
			t.Errorf("%s has no %q: %s", object, want, seen[object])
		}
	}
	if seen["ValidatingAdmissionPolicyBinding chandler-teams-platform"] != "" {
		t.Error("the hub's own namespace has a second binding")
	}
	if want := "args:[--flux-namespace=flux --hub-id=eu --platform-namespaces=a,platform]"; !strings.Contains(seen["Deployment chandler"], want) {
		t.Errorf("the Deployment has not %s", want)
	}
}

func TestWrongOptions(t *testing.T) {
	for want, o := range map[string]manifests.Options{
		`namespace "A"`:          {Namespace: "A"},
		`"fleet" is no flag`:     {Namespace: "a", Args: []string{"--secret-namespaces=x", "fleet"}},
		`--register-all "shoot"`: {Namespace: "a", Args: []string{"--register-all=shoot"}},
		"--hub-id must not":      {Namespace: "a", Args: []string{"--hub-id="}},
	} {
		if _, err := manifests.Build(config.Files, o); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%+v: %v, want %s", o, err, want)
		}
	}
	for image, want := range map[string]string{"": "--image", "a b": "no image", "r.example.org:5000/hub": "no tag"} {
		if err := manifests.CheckImage(image); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("image %q: %v", image, err)
		}
	}
	for _, image := range []string{"r.example.org:5000/hub:v1", "hub@sha256:0"} {
		if err := manifests.CheckImage(image); err != nil {
			t.Error(err)
		}
	}
}

func deployment(image string, labels map[string]string) *appsv1.Deployment {
	d := &appsv1.Deployment{ObjectMeta: metav1.ObjectMeta{Namespace: "chandler-system", Name: "chandler", Labels: labels,
		Annotations: map[string]string{"meta.helm.sh/release-name": "mine"}}}
	d.Spec.Template.Spec.Containers = []corev1.Container{{Image: image}}
	return d
}

// TestRefuse: what would break something is refused, with the words what to do.
func TestRefuse(t *testing.T) {
	good := manifests.There{Kubernetes: "v1.33.1", Deployment: deployment("hub:v0.1.0", nil), HubID: "chandler"}
	with := func(change func(*manifests.There)) manifests.There {
		there := good
		change(&there)
		return there
	}
	for name, tc := range map[string]struct {
		there       manifests.There
		image, mine string
		skew        bool
		want        string
	}{
		"an upgrade":       {there: good, image: "hub:v0.2.0", mine: "v0.2.0"},
		"the same":         {there: good, image: "hub:v0.1.0"},
		"a commit":         {there: good, image: "hub:7d3f0c1"},
		"nothing is there": {there: manifests.There{Kubernetes: "v1.30.0-eks-1"}, image: "hub:v0.1.0"},
		"old Kubernetes":   {there: with(func(x *manifests.There) { x.Kubernetes = "v1.29.9" }), image: "hub:v0.2.0", want: "needs 1.30"},
		"Helm": {there: with(func(x *manifests.There) {
			x.Deployment = deployment("hub:v0.1.0", map[string]string{"app.kubernetes.io/managed-by": "Helm"})
		}), image: "hub:v0.2.0", want: "helm upgrade mine"},
		"Flux": {there: with(func(x *manifests.There) {
			x.Deployment = deployment("hub:v0.1.0", map[string]string{"kustomize.toolkit.fluxcd.io/name": "hubs"})
		}), image: "hub:v0.2.0", want: "change it in Git"},
		"a second hub":        {there: with(func(x *manifests.There) { x.Elsewhere = "other" }), image: "hub:v0.2.0", want: "already, in namespace other"},
		"another ID":          {there: with(func(x *manifests.There) { x.HubID = "eu" }), image: "hub:v0.2.0", want: "-- --hub-id=eu"},
		"an older one":        {there: good, image: "hub:v0.0.9", want: "v0.1.0 is installed"},
		"an older one anyway": {there: good, image: "hub:v0.0.9", skew: true},
		"not this version":    {there: good, image: "hub:v0.3.0", mine: "v0.2.0", want: "take chandler v0.3.0"},
		"newer CRDs":          {there: with(func(x *manifests.There) { x.Unknown = map[string][]string{"teams.chandler.dev": {"spec.new"}} }), image: "hub:v0.2.0", want: "spec.new"},
	} {
		t.Run(name, func(t *testing.T) {
			err := manifests.Refuse(tc.there, manifests.Options{Namespace: "chandler-system", Image: tc.image}, "chandler", tc.mine, tc.skew)
			if (err == nil) != (tc.want == "") || err != nil && !strings.Contains(err.Error(), tc.want) {
				t.Errorf("it says %v, want %q", err, tc.want)
			}
		})
	}
}

// TestRemoval: nobody loses add-ons, or sight of them, without having said so.
func TestRemoval(t *testing.T) {
	fleet := []string{"2 AddonSets", "1 ClusterRegistration"}
	for name, tc := range map[string]struct {
		r    manifests.Removal
		want string
	}{
		"an empty hub":           {manifests.Removal{CRDs: true}, ""},
		"nothing said":           {manifests.Removal{Fleet: fleet}, "there are 2 AddonSets and 1 ClusterRegistration: say"},
		"they stay":              {manifests.Removal{Fleet: fleet, Addons: "keep"}, ""},
		"CRDs of what stays":     {manifests.Removal{Fleet: fleet, Addons: "keep", CRDs: true}, "deletes every AddonSet"},
		"they go":                {manifests.Removal{Fleet: fleet, Addons: "remove", CRDs: true, Leads: true}, ""},
		"they are orphaned":      {manifests.Removal{Fleet: fleet, Addons: "orphan", Leads: true}, ""},
		"nobody would do it":     {manifests.Removal{Fleet: fleet, Addons: "remove"}, "no hub leads"},
		"Flux would undo it":     {manifests.Removal{Fleet: fleet, Addons: "remove", Leads: true, Applied: []string{"AddonSet a/b"}}, "Flux applies AddonSet a/b"},
		"another hub's sets":     {manifests.Removal{Fleet: fleet, Addons: "remove", Leads: true, Elsewhere: "x"}, "the sets are its"},
		"another hub needs CRDs": {manifests.Removal{CRDs: true, Elsewhere: "x"}, "leave out --delete-crds"},
	} {
		t.Run(name, func(t *testing.T) {
			if err := tc.r.Refuse(); (err == nil) != (tc.want == "") || err != nil && !strings.Contains(err.Error(), tc.want) {
				t.Errorf("it says %v, want %q", err, tc.want)
			}
		})
	}
}
