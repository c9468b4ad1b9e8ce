// SPDX-License-Identifier: Apache-2.0

package fluxspec

import (
	"net"
	"net/netip"
	"slices"
	"strings"
	"time"

	sourcev1 "github.com/fluxcd/source-controller/api/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

// What a team would borrow from Flux itself, which serves all teams: its workers, its keys, its identity in a cloud, and its place in
// the platform's network.

// The bounds of durations. A worker of Flux waits for an add-on for as long as its timeout says, and looks at each at its interval.
const (
	teamMinInterval = 10 * time.Second
	teamMaxTimeout  = 30 * time.Minute
)

// The fields with durations, in every kind that has them.
var (
	intervals = []string{"interval", "chart.spec.interval", "retryInterval", "install.strategy.retryInterval",
		"upgrade.strategy.retryInterval"}
	timeouts = []string{"timeout", "install.timeout", "upgrade.timeout", "rollback.timeout", "uninstall.timeout", "test.timeout"}
)

// checkDurations checks the durations of a body or source.
func (r *TeamRules) checkDurations(spec map[string]any) []Problem {
	var out []Problem
	check := func(fields []string, wrong func(time.Duration) bool, bound string) {
		for _, field := range fields {
			text, _, _ := unstructured.NestedFieldNoCopy(spec, strings.Split(field, ".")...)
			s, ok := text.(string)
			if d, err := time.ParseDuration(s); ok && err == nil && wrong(d) {
				out = append(out, Problem{field, r.Refusal("", "Flux's workers serve all teams, so this is %s, and not %s", bound, s)})
			}
		}
	}
	check(intervals, func(d time.Duration) bool { return d < teamMinInterval }, "at least 10s")
	check(timeouts, func(d time.Duration) bool { return d > teamMaxTimeout }, "at most 30m")
	return out
}

// checkDecryption wants keys and an identity of the team's own. Without a Secret, kustomize-controller decrypts with the keys of its flag
// --sops-age-secret. Without a ServiceAccount it asks a cloud's key service as itself, also if there is a Secret that holds no credential
// for that cloud (kustomize-controller, internal/decryptor, SetAuthOptions).
func (r *TeamRules) checkDecryption(body map[string]any) []Problem {
	d, ok := body["decryption"].(map[string]any)
	if !ok {
		return nil
	}
	var out []Problem
	if !filled(d["secretRef"]) {
		out = append(out, Problem{"decryption.secretRef", r.Refusal("", "without it, Flux decrypts with keys of its own; name a Secret "+
			"beside the AddonSet that has the team's keys")})
	}
	if named, ok := d["serviceAccountName"]; !ok || named == "" {
		out = append(out, Problem{"decryption.serviceAccountName", r.Refusal("", "without it, Flux asks a cloud's key service as itself; "+
			"name a ServiceAccount beside the AddonSet")})
	}
	return out
}

// checkIdentity wants a source in a cloud to name whose identity it uses. Without a ServiceAccount it is source-controller's own, which
// reads what is the platform's. The Secret of a Bucket takes its place.
func (r *TeamRules) checkIdentity(kind string, spec map[string]any) []Problem {
	provider, known := spec["provider"].(string)
	if !known || provider == "" || provider == "generic" || provider == sourcev1.GitProviderGitHub {
		return nil
	}
	if named, ok := spec["serviceAccountName"]; ok && named != "" || kind == sourcev1.BucketKind && filled(spec["secretRef"]) {
		return nil
	}
	remedy := "write serviceAccountName"
	switch kind {
	case sourcev1.BucketKind:
		remedy += " or secretRef"
	case sourcev1.HelmRepositoryKind:
		remedy = "an OCIRepository can name a ServiceAccount of the team's"
	}
	return []Problem{{"provider", r.Refusal("", "with %s, Flux logs in with its own identity; %s", provider, remedy)}}
}

// checkPlace refuses the address of a source inside of the platform's network, where Flux is and the team is not, unless a pattern of the
// Team names the very host. What a name resolves to is for Flux's NetworkPolicy to refuse.
func (r *TeamRules) checkPlace(field, address string) []Problem {
	inside := "is no URL that every program reads alike"
	if u, ok := cutURL(address); ok {
		inside = insideOf(u.host)
	}
	if inside == "" || slices.ContainsFunc(r.Allow, func(p string) bool {
		u, _ := cutURL(p)
		return !strings.Contains(u.host, "*") && matches(p, address)
	}) {
		return nil
	}
	return []Problem{{field, r.Refusal(allowField, "%q %s", address, inside)}}
}

// insideOf says why a host, perhaps with a port, is none of the public internet; "" if it may be one.
func insideOf(host string) string {
	name := strings.Trim(host, "[]")
	if h, _, err := net.SplitHostPort(host); err == nil {
		name = h
	}
	name = strings.TrimSuffix(strings.ToLower(name), ".")
	if addr, err := netip.ParseAddr(name); err == nil {
		if isPublic(addr) {
			return ""
		}
		return "has an address inside of a network"
	}
	labels := strings.Split(name, ".")
	last := labels[len(labels)-1]
	switch {
	case last == "" || last[0] >= '0' && last[0] <= '9':
		return "has an address that is not written as one" // 127.1 and 0x7f000001 are 127.0.0.1
	case len(labels) == 1:
		return "has a name that only means something inside of a network"
	case slices.Contains(insideLabels, last) || slices.Contains(labels, "svc"):
		return "has a name inside of a cluster or a cloud"
	}
	return ""
}

// insideLabels are the last labels of names that the public internet does not have: those of a cluster, of a cloud's metadata service,
// and of a local network.
var insideLabels = []string{"svc", "local", "internal", "localhost", "lan", "home", "corp", "intranet", "localdomain"}

// notPublic are the networks that netip has no word for: shared address space, and what a gateway turns into an IPv4 address.
var notPublic = []netip.Prefix{
	netip.MustParsePrefix("0.0.0.0/8"), netip.MustParsePrefix("100.64.0.0/10"), netip.MustParsePrefix("192.0.0.0/24"),
	netip.MustParsePrefix("198.18.0.0/15"), netip.MustParsePrefix("240.0.0.0/4"),
	netip.MustParsePrefix("::/96"), netip.MustParsePrefix("::ffff:0:0:0/96"), netip.MustParsePrefix("64:ff9b::/96"),
	netip.MustParsePrefix("64:ff9b:1::/48"), netip.MustParsePrefix("2001::/32"), netip.MustParsePrefix("2002::/16"),
	netip.MustParsePrefix("fec0::/10"),
}

func isPublic(addr netip.Addr) bool {
	addr = addr.Unmap().WithZone("")
	return addr.IsGlobalUnicast() && !addr.IsPrivate() &&
		!slices.ContainsFunc(notPublic, func(p netip.Prefix) bool { return p.Contains(addr) })
}

// checkProxies refuses what sends Flux elsewhere than the URL says.
func (r *TeamRules) checkProxies(spec map[string]any) []Problem {
	var out []Problem
	for _, field := range []string{"proxySecretRef", "sts"} {
		if filled(spec[field]) {
			out = append(out, Problem{field, r.Refusal("", "%s may send Flux anywhere; a proxy for all is "+
				"source-controller's own", field)})
		}
	}
	return out
}
