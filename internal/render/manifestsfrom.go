// SPDX-License-Identifier: Apache-2.0

package render

import (
	"fmt"
	"slices"

	corev1 "k8s.io/api/core/v1"

	"github.com/chandler-hub/chandler/internal/compile"
	"github.com/chandler-hub/chandler/internal/fluxspec"
	"github.com/chandler-hub/chandler/internal/render/document"
)

// contents are what ConfigMaps and Secrets add to a release that delivers manifests. Flux reads them, so that no Flux object contains
// them, and nothing secret passes through the hub.
type contents struct {
	// references are the entries of valuesFrom.
	references []any
	// versions of the documents are values, so that Flux upgrades when one changes.
	versions map[string]any
	// names are what messages of the chart call the keys that hold objects.
	names map[string]any
	// secrets are those that the chart makes of others.
	secrets []any
	// copies are the hub's of what lies beside the cluster.
	copies []document.Copy
	// crds is true if there are CustomResourceDefinitions among the objects.
	crds bool
}

func (c *contents) values() map[string]any {
	out := map[string]any{}
	if len(c.versions) > 0 {
		out["versions"] = c.versions
	}
	if len(c.names) > 0 {
		out["names"] = c.names
	}
	if len(c.secrets) > 0 {
		out["secrets"] = c.secrets
	}
	return out
}

// refer has Flux read a key of an object, which it finds by the name as. under is the map of values that it is put into; what it is called
// there is returned.
func (c *contents) refer(s fluxspec.ManifestsSource, as, key, under, prefix string, optional bool) string {
	name := fmt.Sprintf("%s%d", prefix, len(c.references))
	c.references = append(c.references, map[string]any{
		"kind": s.Kind, "name": as, "valuesKey": key, "targetPath": under + "." + name, "literal": true, "optional": optional,
	})
	return name
}

func (r *renderer) manifestsFrom(sources []fluxspec.ManifestsSource) (*contents, error) {
	out := &contents{versions: map[string]any{}, names: map[string]any{}}
	if len(sources) > 0 && !fluxspec.KnowsLiteral(r.p.Schemas) {
		return nil, compile.Error{Path: "manifestsFrom", Message: needsLiteral + "objects, or have a folder in Git"}
	}
	for i, s := range sources {
		path := fmt.Sprintf("manifestsFrom[%d]", i)
		doc, as, known, err := r.manifestsSource(path, s)
		if err != nil {
			return nil, err
		}
		if !known {
			continue
		}
		keys := doc.Keys
		if s.Key != "" {
			keys = []string{s.Key}
		}
		out.versions[s.Kind+"/"+as] = doc.Version
		if doc.Found && as != s.Name {
			ref := document.Ref{Kind: s.Kind, Name: s.Name, Namespace: r.t.Registration.Namespace}
			out.copies = append(out.copies, document.Copy{Ref: ref, As: as, Keys: keys})
		}
		if s.CopyAs != nil {
			if err := out.copySecret(s, as, &doc, keys); err != nil {
				return nil, fmt.Errorf("%s: %w", path, err)
			}
			continue
		}
		for _, k := range keys {
			out.names[out.refer(s, as, k, "from", "d", s.Optional)] = fmt.Sprintf("key %q of %s %q", k, s.Kind, s.Name)
		}
		out.crds = out.crds || doc.CRDs
	}
	return out, nil
}

// manifestsSource reads what an entry of manifestsFrom names. as is the name by which Flux finds it in the set's namespace.
func (r *renderer) manifestsSource(path string, s fluxspec.ManifestsSource) (doc document.Document, as string, known bool, err error) {
	ref := document.Ref{Kind: s.Kind, Name: s.Name}
	if s.From == fluxspec.FromCluster {
		doc, as, known, err = r.beside(path, ref)
	} else {
		doc, known, err = r.referTo(path, ref)
		as = s.Name
	}
	switch {
	case err != nil || !known || s.Optional:
	case !doc.Found:
		err = r.absent(path, s.Kind, s.Name, s.From != "")
	case s.Key != "" && !slices.Contains(doc.Keys, s.Key):
		err = fmt.Errorf("%s: %s %q has no key %q; %s", path, s.Kind, s.Name, s.Key, hasKeys(doc.Keys, s.Key))
	}
	return doc, as, known, err
}

// copySecret has the chart make a Secret with the content of another one. What is not text would come out as something else. What
// a reader can log in to a cluster with is not copied to others: that is never meant, and would give them away.
func (c *contents) copySecret(s fluxspec.ManifestsSource, as string, doc *document.Document, keys []string) error {
	if !doc.Found {
		return nil
	}
	if doc.Credential != "" {
		return fmt.Errorf("%s %q %s, and is not copied to clusters", s.Kind, s.Name, doc.Credential)
	}
	data := map[string]any{}
	for _, k := range keys {
		switch {
		case slices.Contains(doc.Keys, k) && slices.Contains(doc.Binary, k):
			return fmt.Errorf("key %q of Secret %q is not UTF-8, and Flux can only copy text; write key: to copy another one alone", k, s.Name)
		case slices.Contains(doc.Keys, k):
			data[k] = c.refer(s, as, k, "copies", "c", false)
		}
	}
	if len(data) == 0 && s.Key != "" {
		return nil // it is optional
	}
	secret := map[string]any{"name": s.Name, "from": s.Name, "type": typeOf(doc.Type, data), "data": data}
	for field, text := range map[string]string{"name": s.CopyAs.Name, "namespace": s.CopyAs.Namespace} {
		if text != "" {
			secret[field] = text
		}
	}
	for field, texts := range map[string]map[string]string{"labels": s.CopyAs.Labels, "annotations": s.CopyAs.Annotations} {
		if len(texts) > 0 {
			values := make(map[string]any, len(texts))
			for k, v := range texts {
				values[k] = v
			}
			secret[field] = values
		}
	}
	c.secrets = append(c.secrets, secret)
	return nil
}

// needs are the keys of which an API server wants all in a Secret of a type.
var needs = map[corev1.SecretType][]string{
	corev1.SecretTypeDockercfg:        {corev1.DockerConfigKey},
	corev1.SecretTypeDockerConfigJson: {corev1.DockerConfigJsonKey},
	corev1.SecretTypeSSHAuth:          {corev1.SSHAuthPrivateKey},
	corev1.SecretTypeTLS:              {corev1.TLSCertKey, corev1.TLSPrivateKeyKey},
}

// typeOf returns the type of a copy. A part of a Secret may lack what its type needs: then it is of none.
func typeOf(of string, data map[string]any) string {
	for _, key := range needs[corev1.SecretType(of)] {
		if _, there := data[key]; !there {
			return string(corev1.SecretTypeOpaque)
		}
	}
	_, name := data[corev1.BasicAuthUsernameKey]
	_, password := data[corev1.BasicAuthPasswordKey]
	if of == string(corev1.SecretTypeBasicAuth) && !name && !password {
		return string(corev1.SecretTypeOpaque)
	}
	return of
}
