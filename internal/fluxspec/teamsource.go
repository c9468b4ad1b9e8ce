// SPDX-License-Identifier: Apache-2.0

package fluxspec

import (
	"slices"
	"strings"

	sourcev1 "github.com/fluxcd/source-controller/api/v1"
)

// checkSource checks the spec of one of the set's own sources. Secrets, ServiceAccounts and proxies that it names are of
// the hub namespace, and so the team's. The signature may be by any key that it has there.
func (r *TeamRules) checkSource(kind string, spec map[string]any) []Problem {
	if r == nil {
		return nil
	}
	var out []Problem
	if len(r.Kinds) > 0 && !slices.Contains(r.Kinds, kind) {
		out = append(out, Problem{"", r.Refusal("spec.sources.kinds", "allows sources of the kinds %s, and this is a %s", some(r.Kinds), kind)})
	}
	if field, address, known := addressOf(kind, spec); known && !r.Allows(address) {
		out = append(out, Problem{field, r.Refusal(allowField, "allows sources at %s, and this is %q", some(r.Allow), address)})
	} else if known {
		out = append(out, r.checkPlace(field, address)...)
	}
	out = append(append(append(out, r.checkIdentity(kind, spec)...), r.checkDurations(spec)...), r.checkProxies(spec)...)
	if spec["recurseSubmodules"] == true && len(r.Allow) > 0 {
		out = append(out, Problem{"recurseSubmodules",
			r.Refusal(allowField, "allows sources at %s, and a submodule may be anywhere", some(r.Allow))})
	}
	if include, ok := spec["include"].([]any); ok && len(include) > 0 && r.RestrictsSources() {
		out = append(out, Problem{"include",
			r.Refusal("spec.sources", "says which sources its sets may use, and what is included is no source of the set's own spec.sources")})
	}
	if r.RequireVerification {
		out = append(out, r.checkVerification(kind, spec)...)
	}
	return out
}

// checkVerification wants a GitRepository and an OCIRepository to verify a signature. A HelmRepository has no such field:
// each HelmRelease verifies the charts that it takes from there (checkWhole), which Flux can do for a registry only. A
// Bucket cannot be verified.
func (r *TeamRules) checkVerification(kind string, spec map[string]any) []Problem {
	switch kind {
	case sourcev1.GitRepositoryKind, sourcev1.OCIRepositoryKind:
		if !filled(spec["verify"]) {
			return []Problem{{"verify", r.Refusal(verificationField, "wants every source to verify a signature")}}
		}
	case sourcev1.HelmRepositoryKind:
		if _, hole := spec["type"].(Hole); !hole && spec["type"] != sourcev1.HelmRepositoryTypeOCI {
			return []Problem{{"type",
				r.Refusal(verificationField, "wants every source to verify a signature, which Flux does for a HelmRepository of type oci only")}}
		}
	default:
		return []Problem{{"", r.Refusal(verificationField, "wants every source to verify a signature, and a %s has none", kind)}}
	}
	return nil
}

// addressOf returns the URL of a source and the field that it comes from. It returns false if the URL is not known yet. A
// Bucket's is its endpoint, with the scheme that Flux uses, and the bucket's name. Of provider gcp Flux reads no endpoint: it asks Google,
// whatever is written there (source-controller, internal/bucket/gcp, NewClient).
func addressOf(kind string, spec map[string]any) (field, address string, known bool) {
	if kind != sourcev1.BucketKind {
		address, known = spec["url"].(string)
		return "url", address, known
	}
	endpoint, known := spec["endpoint"].(string)
	name, named := spec["bucketName"].(string)
	if _, hole := spec["provider"].(Hole); hole {
		return "endpoint", "", false
	}
	if spec["provider"] == sourcev1.BucketProviderGoogle {
		return "endpoint", googleStorage + "/" + name, named
	}
	if !strings.Contains(endpoint, "://") {
		scheme := "https://"
		if spec["insecure"] == true {
			scheme = "http://"
		}
		endpoint = scheme + endpoint
	}
	return "endpoint", strings.TrimSuffix(endpoint, "/") + "/" + name, known && named
}

// googleStorage is where Google has its buckets.
const googleStorage = "https://storage.googleapis.com"
