// SPDX-License-Identifier: Apache-2.0

package fluxstate_test

import (
	"testing"

	helmv2 "github.com/fluxcd/helm-controller/api/v2"
	kustomizev1 "github.com/fluxcd/kustomize-controller/api/v1"
	fluxmeta "github.com/fluxcd/pkg/apis/meta"
	sourcev1 "github.com/fluxcd/source-controller/api/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/chandler-hub/chandler/internal/fluxstate"
)

// TestRefusalOf: what Flux says of a source is a refusal if Flux has tried what the spec says now, and there is nothing to go on with.
func TestRefusalOf(t *testing.T) {
	named := metav1.ObjectMeta{Namespace: "a", Name: "b", Generation: 2}
	said := func(ready metav1.ConditionStatus, generation int64) []metav1.Condition {
		return []metav1.Condition{{Type: "Ready", Status: ready, Reason: "R", Message: "no\n such", ObservedGeneration: generation}}
	}
	refusal := func(kind string) fluxstate.Refusal {
		return fluxstate.Refusal{Source: kind + " a/b", Reason: "R", Message: "no such"}
	}
	for name, tc := range map[string]struct {
		source client.Object
		want   fluxstate.Refusal
	}{
		"Chart":      {&sourcev1.HelmChart{ObjectMeta: named, Status: sourcev1.HelmChartStatus{Conditions: said("False", 2)}}, refusal("HelmChart")},
		"Repository": {&sourcev1.HelmRepository{ObjectMeta: named, Status: sourcev1.HelmRepositoryStatus{Conditions: said("False", 2)}}, refusal("HelmRepository")},
		"Git":        {&sourcev1.GitRepository{ObjectMeta: named, Status: sourcev1.GitRepositoryStatus{Conditions: said("False", 2)}}, refusal("GitRepository")},
		"OCI":        {&sourcev1.OCIRepository{ObjectMeta: named, Status: sourcev1.OCIRepositoryStatus{Conditions: said("False", 2)}}, refusal("OCIRepository")},
		"Bucket":     {&sourcev1.Bucket{ObjectMeta: named, Status: sourcev1.BucketStatus{Conditions: said("False", 2)}}, refusal("Bucket")},
		"HasAnOlderArtifact": {&sourcev1.GitRepository{ObjectMeta: named, Status: sourcev1.GitRepositoryStatus{
			Conditions: said("False", 2), Artifact: &fluxmeta.Artifact{}}}, fluxstate.Refusal{}},
		"OfAnOlderSpec": {&sourcev1.HelmChart{ObjectMeta: named, Status: sourcev1.HelmChartStatus{Conditions: said("False", 1)}}, fluxstate.Refusal{}},
		"Fetched":       {&sourcev1.HelmChart{ObjectMeta: named, Status: sourcev1.HelmChartStatus{Conditions: said("True", 2)}}, fluxstate.Refusal{}},
		"BeingFetched":  {&sourcev1.HelmChart{ObjectMeta: named, Status: sourcev1.HelmChartStatus{Conditions: said("Unknown", 2)}}, fluxstate.Refusal{}},
		"New":           {&sourcev1.HelmChart{ObjectMeta: named}, fluxstate.Refusal{}},
	} {
		if got := fluxstate.RefusalOf(tc.source); got != tc.want {
			t.Errorf("%s: %+v", name, got)
		}
	}
}

// TestBegun: Flux has begun if it has what it is to apply; what failed has begun if it was applied.
func TestBegun(t *testing.T) {
	release := func(tried int64, ready metav1.ConditionStatus, reason string, stored ...string) client.Object {
		o := &helmv2.HelmRelease{ObjectMeta: metav1.ObjectMeta{Generation: 3}}
		o.Status = helmv2.HelmReleaseStatus{ObservedGeneration: 3, LastAttemptedGeneration: tried, LastAttemptedRevision: "1.1.0", LastAttemptedConfigDigest: "new", Failures: 1,
			Conditions: []metav1.Condition{{Type: "Ready", Status: ready, Reason: reason, ObservedGeneration: 3}}}
		if len(stored) > 0 {
			o.Status.History = helmv2.Snapshots{{Version: 1, ChartVersion: stored[0], ConfigDigest: stored[1]}}
		}
		return o
	}
	folder := func(ready metav1.ConditionStatus, reason string, generation int64) client.Object {
		return &kustomizev1.Kustomization{ObjectMeta: metav1.ObjectMeta{Generation: 3}, Status: kustomizev1.KustomizationStatus{
			Conditions: []metav1.Condition{{Type: "Ready", Status: ready, Reason: reason, ObservedGeneration: generation}}}}
	}
	for name, tc := range map[string]struct {
		obj  client.Object
		want bool
	}{
		"ReleaseIsInstalled":       {release(3, "Unknown", "Progressing"), true},
		"ReleaseWaitsForItsChart":  {release(0, "False", "SourceNotReady"), false},
		"ReleaseOfTheSpecBefore":   {release(2, "Unknown", "Progressing"), false},
		"PodsOfTheReleaseWait":     {release(3, "False", "InstallFailed", "1.1.0", "new"), true},
		"TemplatesOfTheFirstFail":  {release(3, "False", "InstallFailed"), false},
		"TemplatesOfAnUpgradeFail": {release(3, "False", "UpgradeFailed", "1.0.0", "new"), false},
		"TemplatesOfNewValuesFail": {release(3, "False", "UpgradeFailed", "1.1.0", "old"), false},
		"FolderIsApplied":          {folder("Unknown", "Progressing", 3), true},
		"FolderWaitsForItsSource":  {folder("False", "ArtifactFailed", 3), false},
		"FolderDoesNotBuild":       {folder("False", "BuildFailed", 3), false},
		"PodsOfTheFolderWait":      {folder("False", "HealthCheckFailed", 3), true},
		"WebhookOfTheFolderIsAway": {folder("False", "ReconciliationFailed", 3), true},
		"FolderIsOfTheSpecBefore":  {folder("Unknown", "Progressing", 2), false},
		"NewReleaseHasSaidNothing": {&helmv2.HelmRelease{ObjectMeta: metav1.ObjectMeta{Generation: 1}}, false},
		"NewFolderHasSaidNothing":  {&kustomizev1.Kustomization{ObjectMeta: metav1.ObjectMeta{Generation: 1}}, false},
	} {
		if got := fluxstate.Of(tc.obj).Begun; got != tc.want {
			t.Errorf("%s: %t", name, got)
		}
	}
}
