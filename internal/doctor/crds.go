// SPDX-License-Identifier: Apache-2.0

package doctor

import (
	"fmt"
	"maps"
	"slices"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"

	"github.com/chandler-hub/chandler/internal/status"
)

const (
	crdRemedy = "apply the CRDs of the hub's version before the hub itself (docs/upgrade.md)"
	// fluxRemedy is for what is missing or too old.
	fluxRemedy = "install Flux 2.7 or newer, better 2.9: flux install, or what you have bootstrapped Flux with"
)

func crdSummary(f *Facts) string {
	if !f.CRDs.Read {
		return "our CRDs, and those of Flux"
	}
	return fmt.Sprintf("%d of ours, %d of Flux", len(f.CRDs.Wanted), len(f.CRDs.FluxWanted))
}

// ourCRDs finds CRDs of ours that are missing, or of another version than this command line.
func ourCRDs(f *Facts) []Finding {
	if !f.CRDs.Read {
		return nil
	}
	var missing Objects
	var out []Finding
	for i := range f.CRDs.Wanted {
		want := &f.CRDs.Wanted[i]
		there := f.CRDs.Installed[want.Name]
		if there == nil {
			missing.Add(want.Name)
			continue
		}
		served, lacks := compare(want, there)
		switch {
		case !served || len(lacks) > 0:
			out = append(out, older(want, lacks, served, "CRDOlder", crdRemedy))
		default:
			if more := Unknown(want, there); len(more) > 0 {
				out = append(out, Finding{Severity: Warning, Code: "CRDNewer", Objects: first(more), Count: len(more),
					What:   fmt.Sprintf("CRD %s has %s that this command line does not know", want.Name, status.Count(len(more), "field")),
					Remedy: "take the command line of the hub's version"})
			}
		}
	}
	return append(some(missing, Finding{Severity: Error, Code: "CRDMissing",
		What: fmt.Sprintf("%d of our %d CRDs are not installed", missing.Count, len(f.CRDs.Wanted)), Remedy: crdRemedy}), out...)
}

// fluxCRDs finds CRDs of Flux that are missing or older than what the hub writes.
func fluxCRDs(f *Facts) []Finding {
	if !f.CRDs.Read {
		return nil
	}
	var missing Objects
	var out []Finding
	for i := range f.CRDs.FluxWanted {
		want := &f.CRDs.FluxWanted[i]
		there := f.CRDs.Installed[want.Name]
		if there == nil {
			missing.Add(want.Name)
			continue
		}
		served, lacks := compare(want, there)
		if !served {
			out = append(out, older(want, nil, false, "FluxCRDOlder", fluxRemedy))
		} else if len(lacks) > 0 {
			out = append(out, older(want, lacks, true, "FluxCRDOlder", fluxRemedy))
			out[len(out)-1].Severity = Warning // a set that writes none of them works
		}
	}
	return append(some(missing, Finding{Severity: Error, Code: "FluxCRDMissing",
		What:   fmt.Sprintf("%d of the %d CRDs of Flux that the hub writes are not installed", missing.Count, len(f.CRDs.FluxWanted)),
		Remedy: fluxRemedy}), out...)
}

func older(want *apiextensionsv1.CustomResourceDefinition, lacks []string, served bool, code, remedy string) Finding {
	f := Finding{Severity: Error, Code: code, Objects: first(lacks), Count: len(lacks), Remedy: remedy,
		What: fmt.Sprintf("CRD %s is older than this version's: it lacks %s, and the API server drops what is written there", want.Name,
			status.Count(len(lacks), "field"))}
	if !served {
		f.What = fmt.Sprintf("CRD %s does not serve version %s", want.Name, want.Spec.Versions[0].Name)
	}
	return f
}

func first(names []string) []string { return names[:min(len(names), maxObjects)] }

// Unknown returns the fields of an installed CRD that ours does not have, by their paths.
func Unknown(ours, there *apiextensionsv1.CustomResourceDefinition) []string {
	_, more := compare(there, ours)
	return more
}

// compare returns whether a CRD serves the version of another one, and the paths of fields in it that it lacks.
func compare(want, there *apiextensionsv1.CustomResourceDefinition) (served bool, lacks []string) {
	for i := range want.Spec.Versions {
		w := &want.Spec.Versions[i]
		if !w.Served || w.Schema == nil {
			continue
		}
		at := slices.IndexFunc(there.Spec.Versions, func(v apiextensionsv1.CustomResourceDefinitionVersion) bool {
			return v.Name == w.Name && v.Served
		})
		if at < 0 {
			return false, nil
		}
		if has := there.Spec.Versions[at].Schema; has != nil {
			lacks = append(lacks, fields("", w.Schema.OpenAPIV3Schema, has.OpenAPIV3Schema)...)
		}
		break // the others are older
	}
	return true, lacks
}

// fields returns the fields that one schema has and another lacks, by their paths; of one that is lacking, not those within.
func fields(path string, want, has *apiextensionsv1.JSONSchemaProps) []string {
	if want == nil || has == nil || has.XPreserveUnknownFields != nil && *has.XPreserveUnknownFields {
		return nil
	}
	var out []string
	for _, name := range slices.Sorted(maps.Keys(want.Properties)) {
		if path == "" && name != "spec" && name != "status" {
			continue
		}
		at := path + "." + name
		if path == "" {
			at = name
		}
		w := want.Properties[name]
		h, ok := has.Properties[name]
		if !ok {
			out = append(out, at)
			continue
		}
		out = append(out, fields(at, &w, &h)...)
	}
	if want.Items != nil && has.Items != nil {
		out = append(out, fields(path+"[]", want.Items.Schema, has.Items.Schema)...)
	}
	if want.AdditionalProperties != nil && has.AdditionalProperties != nil {
		out = append(out, fields(path+".*", want.AdditionalProperties.Schema, has.AdditionalProperties.Schema)...)
	}
	return out
}
