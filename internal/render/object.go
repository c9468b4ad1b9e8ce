// SPDX-License-Identifier: Apache-2.0

package render

import (
	"cmp"
	"errors"
	"fmt"
	"maps"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	hubv1 "github.com/chandler-hub/chandler/api/v1alpha1"
	"github.com/chandler-hub/chandler/internal/compile"
	"github.com/chandler-hub/chandler/internal/fluxspec"
	"github.com/chandler-hub/chandler/internal/identity"
	"github.com/chandler-hub/chandler/internal/render/flux"
	"github.com/chandler-hub/chandler/internal/shard"
)

// objects makes the Flux objects of an add-on from its body. The body is the add-on's own copy by now.
func (r *renderer) objects(a *compile.Addon, body map[string]any, used []flux.Shared) ([]flux.Object, error) {
	if a.Kind != fluxspec.ManifestsKind {
		body, copies, err := r.copies(a, body)
		if err != nil || len(r.out.Missing) > 0 {
			return nil, err
		}
		o, err := r.object(a, release{name: a.Name, dependsOn: a.DependsOn, movedFrom: a.MovedFrom}, body)
		if err != nil {
			return nil, err
		}
		o.Copies = copies
		o.Shared = append(used, o.Shared...)
		return []flux.Object{*o}, nil
	}
	releases, spec, copies, err := r.manifests(a, body)
	if err != nil || len(r.out.Missing) > 0 {
		return nil, err
	}
	repository, err := r.chartRepository()
	if err != nil {
		return nil, err
	}
	out := make([]flux.Object, 0, len(releases))
	for _, rel := range releases {
		one := maps.Clone(spec)
		values := maps.Clone(spec["values"].(map[string]any))
		values["select"] = rel.selects
		if len(rel.objects) > 0 {
			values["objects"] = rel.objects
		}
		one["values"] = values
		o, err := r.object(a, rel, one)
		if err != nil {
			return nil, err
		}
		o.Chart = r.t.Chart.Name
		o.Copies = copies
		o.Once = body["strategy"] == fluxspec.StrategyApplyOnce
		o.Shared = append([]flux.Shared{repository}, o.Shared...)
		out = append(out, *o)
	}
	return out, nil
}

func (r *renderer) object(a *compile.Addon, rel release, spec map[string]any) (*flux.Object, error) {
	out := &flux.Object{Addon: rel.name, Kind: fluxKind(a.Kind), Form: a.Kind, DependsOn: rel.dependsOn, MovedFrom: rel.movedFrom,
		DefaultRelease: true}
	if out.Kind == fluxspec.HelmReleaseKind {
		if err := r.keepRelease(out, spec); err != nil {
			return nil, err
		}
	}
	fluxspec.Default(a.Kind, spec, rel.name, r.team)
	if out.Kind == fluxspec.HelmReleaseKind {
		out.Release, out.Chart = identityOf(spec), fluxspec.ReinstallsFor(spec)
		fluxspec.LeaveOutUnknown(spec, r.p.Schemas)
		for _, namespace := range []string{out.Release.Namespace, out.Release.StorageNamespace} {
			if why := r.team.RefusesRelease(namespace); why != "" {
				return nil, errors.New(why)
			}
		}
		chart, err := r.shareChart(spec, r.chartInterval(a, spec["interval"]))
		if err != nil {
			return nil, err
		}
		if chart != nil {
			out.Shared = append(out.Shared, *chart)
		}
	} else {
		out.TargetNamespace, _ = spec["targetNamespace"].(string)
		out.NamePrefix, _ = spec["namePrefix"].(string)
		out.NameSuffix, _ = spec["nameSuffix"].(string)
		out.Path, _ = spec["path"].(string)
	}
	if err := r.impersonate(out, spec); err != nil {
		return nil, err
	}
	spec["kubeConfig"] = r.kubeConfig()
	u := &unstructured.Unstructured{Object: map[string]any{"spec": spec}}
	u.SetGroupVersionKind(flux.GroupVersionKind(out.Kind))
	u.SetNamespace(r.t.Namespace)
	u.SetName(identity.FluxObject(r.t.HubID, r.t.Registration, rel.name))
	u.SetLabels(Labels(r.t, rel.name))
	u.SetAnnotations(r.annotations(a, out))
	out.Object, out.Namespace, out.Name = u, u.GetNamespace(), u.GetName()
	return out, out.Seal()
}

// kubeConfig returns the reference to the kubeconfig copy.
func (r *renderer) kubeConfig() map[string]any {
	name := identity.KubeconfigCopy(r.t.HubID, r.t.Registration)
	if r.in.Identity != "" {
		return map[string]any{"configMapRef": map[string]any{"name": name}}
	}
	return map[string]any{"secretRef": map[string]any{"name": name, "key": flux.KubeconfigKey}}
}

// impersonate sets the ServiceAccount that Flux impersonates on the cluster, and adds a placeholder ServiceAccount of that name
// on the management cluster. The placeholder has no rights. kustomize-controller, when it finalizes, looks for the ServiceAccount on
// the management cluster, also for a remote target. Without the placeholder it deletes nothing and logs nothing
// (fluxcd/pkg/runtime/client, CanImpersonate).
//
// A team's add-ons come with a token of the Team's ServiceAccount, which may not impersonate. The cluster's own
// ServiceAccount is for those who come with its kubeconfig.
func (r *renderer) impersonate(out *flux.Object, spec map[string]any) error {
	name, _ := spec["serviceAccountName"].(string)
	if _, said := spec["serviceAccountName"]; !said && r.in.ServiceAccount != "" && r.team == nil {
		name = r.in.ServiceAccount
		spec["serviceAccountName"] = name
	}
	if name == "" {
		return nil
	}
	account, err := flux.PlaceholderServiceAccount(r.t.HubID, r.t.Namespace, name)
	out.Shared = append(out.Shared, account)
	return err
}

// keepRelease writes the release that the add-on goes on with into the body, unless the body says otherwise. If any
// of these fields changed, Flux would uninstall the release and install it again.
func (r *renderer) keepRelease(out *flux.Object, spec map[string]any) error {
	kept, ok := r.in.Releases[out.Addon]
	if !ok {
		return nil
	}
	plain := map[string]any{}
	for _, f := range []string{"releaseName", "targetNamespace", "storageNamespace"} {
		if v, ok := spec[f]; ok {
			plain[f] = v
		}
	}
	fluxspec.Default(out.Form, plain, out.Addon, r.team)
	if identityOf(plain) == kept.HelmReleaseIdentity {
		return nil
	}
	out.DefaultRelease = false
	for field, v := range map[string]string{"releaseName": kept.Name, "targetNamespace": kept.Namespace,
		"storageNamespace": kept.StorageNamespace} {
		there, said := spec[field].(string)
		switch {
		case !said:
			spec[field] = v
		case there != v && kept.From != "":
			return fmt.Errorf("helmRelease.%s is %q, and %s runs with %q: Flux would uninstall it and install another. Leave the field out, or "+
				"write %q", field, there, kept.From, v, v)
		}
	}
	return nil
}

func identityOf(spec map[string]any) hubv1.HelmReleaseIdentity {
	text := func(field string) string { s, _ := spec[field].(string); return s }
	return hubv1.HelmReleaseIdentity{Name: text("releaseName"), Namespace: text("targetNamespace"), StorageNamespace: text("storageNamespace")}
}

// Labels returns the labels of the Flux object of an add-on. An Object has them only in its body: a hub keeps tens of
// thousands of Objects without bodies, and labels would double their size.
func Labels(t Target, addon string) map[string]string {
	key := identity.ClusterKey(t.HubID, t.Registration)
	out := map[string]string{
		"app.kubernetes.io/managed-by": "chandler",
		hubv1.ClusterKeyLabel:          key,
		hubv1.ClusterLabel:             identity.LabelValue(t.Registration.Name),
		hubv1.AddonSetLabel:            identity.LabelValue(t.Set),
		hubv1.AddonLabel:               addon,
	}
	if s := shard.Of(key, t.FluxShards); s != "" {
		out[shard.Label] = s
	}
	return out
}

func (r *renderer) annotations(a *compile.Addon, o *flux.Object) map[string]string {
	out := map[string]string{
		hubv1.RegistrationAnnotation: r.t.Registration.String(),
		hubv1.DeliveryAnnotation:     r.t.Delivery,
		hubv1.EventClusterAnnotation: r.t.Registration.String(),
		hubv1.EventSetAnnotation:     r.t.Namespace + "/" + r.t.Set,
		hubv1.EventAddonAnnotation:   a.Name,
	}
	if uid := cmp.Or(r.in.Identity, r.in.Cluster.UID); uid != "" {
		out[hubv1.ClusterUIDAnnotation] = uid
	}
	if o.Kind == fluxspec.HelmReleaseKind && !o.DefaultRelease {
		out[hubv1.ReleaseAnnotation] = flux.FormatRelease(o.Release)
	}
	if a.Orphan {
		out[hubv1.DeletionPolicyAnnotation] = string(hubv1.DeletionPolicyOrphan)
	}
	return out
}
