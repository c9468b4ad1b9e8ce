// SPDX-License-Identifier: Apache-2.0

package provenance_test

import (
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/types"

	hubv1 "github.com/chandler-hub/chandler/api/v1alpha1"
	"github.com/chandler-hub/chandler/internal/identity"
	"github.com/chandler-hub/chandler/internal/match"
	"github.com/chandler-hub/chandler/internal/provenance"
)

func TestOf(t *testing.T) {
	one := types.NamespacedName{Namespace: "fleet", Name: "one"}
	for name, tc := range map[string]struct {
		namespace, name, uid string
		set, platform        bool
		want                 provenance.Standing
		reason               string
	}{
		"made by the set's controller":              {"platform", "", "set", true, true, provenance.Genuine, ""},
		"beside the registration":                   {"fleet", "", "set", true, false, provenance.Genuine, ""},
		"by an older hub":                           {"platform", "", "", true, true, provenance.Unclaimed, hubv1.NotFromAddonSetReason},
		"out of a backup, or of a set that was":     {"platform", "", "was", true, true, provenance.Unclaimed, hubv1.NotFromAddonSetReason},
		"of a set that is not there":                {"platform", "", "set", false, true, provenance.Held, hubv1.AddonSetNotFoundReason},
		"under another name":                        {"platform", "mine", "set", true, true, provenance.Ignored, hubv1.NotFromAddonSetReason},
		"forged in a namespace without a set":       {"tenant", "", "", false, false, provenance.Ignored, hubv1.OutOfReachReason},
		"forged beside a set":                       {"tenant", "", "", true, false, provenance.Ignored, hubv1.OutOfReachReason},
		"forged, with the UID of a set of his own":  {"tenant", "", "set", true, false, provenance.Held, hubv1.OutOfReachReason},
		"under another name, with the UID of a set": {"tenant", "mine", "set", true, false, provenance.Ignored, hubv1.NotFromAddonSetReason},
	} {
		d := &hubv1.AddonDelivery{ObjectMeta: metav1.ObjectMeta{Namespace: tc.namespace, Name: identity.Delivery("base", one)}}
		if tc.name != "" {
			d.Name = tc.name
		}
		d.Spec.RegistrationRef = hubv1.RegistrationReference{Namespace: one.Namespace, Name: one.Name}
		d.Spec.AddonSetRef = hubv1.DeliveredSetReference{Name: "base", UID: types.UID(tc.uid)}
		var set *hubv1.AddonSet
		if tc.set {
			set = &hubv1.AddonSet{ObjectMeta: metav1.ObjectMeta{Namespace: tc.namespace, Name: "base", UID: "set"}}
		}
		v := provenance.Of(d, set, match.Missing(one), match.Reach{Namespace: tc.namespace, Platform: tc.platform})
		if v.Standing != tc.want || v.Reason != tc.reason || (v.Message == "") != (tc.want == provenance.Genuine) {
			t.Errorf("%s: %+v, want %s %s", name, v, tc.want, tc.reason)
		}
	}
}

// A Team's set reaches the clusters that the Team selects. What the hub has reported on stays known when the Team loses
// the cluster, and what somebody forges does not count.
func TestOfTeam(t *testing.T) {
	reg := &hubv1.ClusterRegistration{ObjectMeta: metav1.ObjectMeta{Namespace: "fleet", Name: "one", Labels: map[string]string{"env": "prod"}}}
	of := func(env string) match.Reach {
		if env == "" { // the Team is not valid
			return match.Reach{Namespace: "shop", Team: &match.Team{Namespace: "platform", Name: "shop", Clusters: labels.Nothing(), Broken: "Team platform/shop is not valid"}}
		}
		return match.Reach{Namespace: "shop", Team: &match.Team{Namespace: "platform", Name: "shop", Clusters: labels.SelectorFromSet(labels.Set{"env": env})}}
	}
	set := &hubv1.AddonSet{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "base", UID: "set"}}
	for name, tc := range map[string]struct {
		env, uid string
		reg      *hubv1.ClusterRegistration
		want     provenance.Standing
	}{
		"TheTeams":        {"prod", "set", reg, provenance.Genuine},
		"Lost":            {"staging", "set", reg, provenance.Held},
		"Forged":          {"staging", "other", reg, provenance.Ignored},
		"NotRegistered":   {"prod", "set", nil, provenance.Held},
		"ForgedForNobody": {"prod", "other", nil, provenance.Ignored},
		"Broken":          {"", "set", reg, provenance.Held},
		"ForgedBroken":    {"", "other", reg, provenance.Ignored},
	} {
		key := types.NamespacedName{Namespace: "fleet", Name: "one"}
		d := &hubv1.AddonDelivery{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: identity.Delivery("base", key)}}
		d.Spec.RegistrationRef = hubv1.RegistrationReference{Namespace: key.Namespace, Name: key.Name}
		d.Spec.AddonSetRef = hubv1.DeliveredSetReference{Name: "base", UID: types.UID(tc.uid)}
		v := provenance.Of(d, set, tc.reg, of(tc.env))
		if v.Standing != tc.want || tc.want != provenance.Genuine && !strings.Contains(v.Message, "Team platform/shop") {
			t.Errorf("%s: %+v", name, v)
		}
	}
}
