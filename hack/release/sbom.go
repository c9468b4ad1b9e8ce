// SPDX-License-Identifier: Apache-2.0

package main

import (
	"debug/buildinfo"
	"os"
	"strings"
	"time"

	cdx "github.com/CycloneDX/cyclonedx-go"
)

// writeSBOM writes what a binary is made of, as Go has noted it in the binary, in CycloneDX.
func (r *release) writeSBOM(binary, command string, p platform) error {
	info, err := buildinfo.ReadFile(binary)
	if err != nil {
		return err
	}
	f, err := os.Create(r.path(r.sbomName(command, p)))
	if err != nil {
		return err
	}
	defer f.Close() // closed below where it matters
	encoder := cdx.NewBOMEncoder(f, cdx.BOMFileFormatJSON)
	encoder.SetPretty(true)
	if err := encoder.Encode(bom(info, command, r.version, r.made)); err != nil {
		return err
	}
	return f.Close()
}

// bom lists the modules that a binary was linked from. It has no serial number: the same binary has the same SBOM.
func bom(info *buildinfo.BuildInfo, command, version string, made time.Time) *cdx.BOM {
	main := component(module, version, "")
	main.Type, main.Name = cdx.ComponentTypeApplication, command
	components := []cdx.Component{component("stdlib", strings.TrimPrefix(info.GoVersion, "go"), "")}
	for _, m := range info.Deps {
		if m.Replace != nil {
			m = m.Replace
		}
		components = append(components, component(m.Path, m.Version, m.Sum))
	}
	var refs []string
	for _, c := range components {
		refs = append(refs, c.BOMRef)
	}
	out := cdx.NewBOM()
	out.SerialNumber = ""
	out.Metadata = &cdx.Metadata{Timestamp: made.Format(time.RFC3339), Component: &main}
	out.Components = &components
	out.Dependencies = &[]cdx.Dependency{{Ref: main.BOMRef, Dependencies: &refs}}
	return out
}

func component(path, version, sum string) cdx.Component {
	purl := "pkg:golang/" + path + "@" + version
	c := cdx.Component{Type: cdx.ComponentTypeLibrary, BOMRef: purl, PackageURL: purl, Name: path, Version: version}
	if sum != "" {
		c.Properties = &[]cdx.Property{{Name: "golang:sum", Value: sum}}
	}
	return c
}
