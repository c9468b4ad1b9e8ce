// SPDX-License-Identifier: Apache-2.0

package documents

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"

	hubv1 "github.com/chandler-hub/chandler/api/v1alpha1"
	"github.com/chandler-hub/chandler/internal/hubscheme"
	"github.com/chandler-hub/chandler/internal/render/document"
)

// TestReadersAreForgotten: a cluster that has no deliveries any more reads no documents, and one that nobody reads is not kept.
// TestSizeOfAnnotation: what a document's annotation makes of it counts, too.
func TestSizeOfAnnotation(t *testing.T) {
	doc := document.ConfigMap(map[string]string{hubv1.ShareAnnotation: strings.Repeat("a,", 125000)}, nil)
	if least := 16 * len(doc.SharedWith); size(&doc) < least {
		t.Errorf("counts %d bytes, and takes at least %d", size(&doc), least)
	}
}

func TestReadersAreForgotten(t *testing.T) {
	var d Reader
	one, two := types.NamespacedName{Name: "one"}, types.NamespacedName{Name: "two"}
	both, alone := place{"flux-system", document.Ref{Kind: "ConfigMap", Name: "both"}}, place{"flux-system", document.Ref{Kind: "Secret", Name: "alone"}}
	d.Forget(one) // of which nothing is known
	d.readers.Note(one, both)
	d.readers.Note(two, both)
	d.readers.Note(one, alone)
	d.keep(both, "1", document.Document{})
	d.keep(alone, "2", document.Document{})
	d.Forget(one)
	if kept, _ := d.Kept(); d.Notes() != 1 || !slices.Equal(d.readers.Of(both), []types.NamespacedName{two}) || kept != 1 {
		t.Errorf("left: %d documents, %d notes", kept, d.Notes())
	}
	d.Forget(two)
	if kept, _ := d.Kept(); d.Notes() != 0 || kept != 0 {
		t.Errorf("left: %d documents, %d notes", kept, d.Notes())
	}
}

// TestDocumentsAreBounded: a fleet whose clusters each have a large document of their own does not fill the hub's memory. What was read last is kept.
func TestDocumentsAreBounded(t *testing.T) {
	d := Reader{Most: 10_000}
	at := func(name string) place { return place{"flux-system", document.Ref{Kind: "ConfigMap", Name: name}} }
	large := document.ConfigMap(nil, map[string]string{"values.yaml": strings.Repeat("x", 4000)})
	for i, name := range []string{"a", "b", "c"} {
		d.readers.Note(types.NamespacedName{Name: "one"}, at(name))
		d.keep(at(name), "1", large)
		if _, kept := d.known(at("a"), "1"); !kept { // which makes it the last one read
			t.Fatalf("a has gone after %d", i)
		}
	}
	if entries, bytes := d.Kept(); entries != 2 || bytes < 8000 || bytes > d.Most {
		t.Errorf("%d documents of %d bytes are kept", entries, bytes)
	}
	if _, kept := d.known(at("b"), "1"); kept {
		t.Error("what was read longest ago is kept")
	}
	if _, kept := d.known(at("c"), "2"); kept {
		t.Error("a document is kept that has changed")
	}
	d.keep(at("a"), "2", large)
	d.keep(at("c"), "2", document.ConfigMap(nil, nil))
	d.Forget(types.NamespacedName{Name: "one"})
	if entries, bytes := d.Kept(); entries != 0 || bytes != 0 {
		t.Errorf("%d documents of %d bytes are kept for nobody", entries, bytes)
	}
}

// TestOldNotesAreForgotten: somebody reads other documents than before, of which many do not exist. What he has not read again is forgotten
// when all has been read that he reads now; what he has read is what he is woken for, until then too.
func TestOldNotesAreForgotten(t *testing.T) {
	var d Reader
	api := fake.NewClientBuilder().WithScheme(hubscheme.New()).Build()
	from := From{api, api}
	one, two := types.NamespacedName{Name: "one"}, types.NamespacedName{Name: "two"}
	ref := func(name string) document.Ref { return document.Ref{Kind: "ConfigMap", Name: name} }
	wakes := func(name string) bool {
		return len(d.ReadersOf("ConfigMap")(t.Context(), &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: "tenant", Name: name}})) > 0
	}
	read := func(reader types.NamespacedName, name string) {
		t.Helper()
		if _, _, err := d.Read(t.Context(), from, reader, "tenant", ref(name)); err != nil {
			t.Fatal(err)
		}
	}
	d.Prune(two) // of whom nothing is known
	read(two, "5-0")
	for edit := range 10 {
		for n := range 16 {
			read(one, fmt.Sprintf("%d-%d", edit, n))
		}
		if _, err := d.Versions(t.Context(), from, one, "tenant", []document.Ref{ref("always")}); err != nil {
			t.Fatal(err)
		}
		if !wakes(fmt.Sprintf("%d-0", edit)) || edit > 0 && !wakes(fmt.Sprintf("%d-0", edit-1)) {
			t.Fatal("what he reads does not wake him, or did not until he had read all")
		}
		d.Prune(one)
	}
	if !wakes("9-0") || !wakes("9-15") || !wakes("always") || wakes("8-0") || !wakes("5-0") {
		t.Errorf("%d are noted", d.Notes())
	}
	if n := d.Notes(); n != 18 {
		t.Errorf("%d notes, want 17 of one and 1 of two", n)
	}
	d.keep(place{"tenant", ref("9-0")}, "1", document.Document{})
	d.Prune(one)
	if entries, _ := d.Kept(); d.Notes() != 1 || entries != 0 {
		t.Errorf("he has read nothing since: %d notes, %d documents", d.Notes(), entries)
	}
}
