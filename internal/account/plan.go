// SPDX-License-Identifier: Apache-2.0

package account

import (
	"fmt"
	"io"
	"net/netip"
	"strings"
	"text/tabwriter"
	"time"

	"k8s.io/apimachinery/pkg/util/version"
	"sigs.k8s.io/yaml"

	"github.com/chandler-hub/chandler/internal/excerpt"
	"github.com/chandler-hub/chandler/internal/kubeconfig"
)

// Plan says what is done to register a cluster.
type Plan struct {
	// Registration, Server and Version say which cluster it is.
	Registration, Server, Version string
	// Cluster and Hub are what is done with each object there.
	Cluster, Hub []Step
	// Warnings are what is no hindrance, and may become one.
	Warnings []string
}

// Step is what is done with one object.
type Step struct {
	State  State
	Object string
	// Note says more; may be empty.
	Note string
}

// Nothing returns whether the plan changes nothing.
func (p Plan) Nothing() bool {
	for _, s := range append(p.Cluster[:len(p.Cluster):len(p.Cluster)], p.Hub...) {
		if s.State != AsIs {
			return false
		}
	}
	return true
}

// Print writes the plan for people.
func (p Plan) Print(w io.Writer) error {
	var b strings.Builder
	fmt.Fprintf(&b, "Cluster %s: %s, Kubernetes %s\n", p.Registration, p.Server, p.Version)
	for _, warning := range p.Warnings {
		fmt.Fprintf(&b, "Warning: %s\n", warning)
	}
	t := tabwriter.NewWriter(&b, 0, 0, 3, ' ', 0)
	fmt.Fprint(t, "\nWHERE\tWHAT\tOBJECT\n")
	for _, side := range []struct {
		name  string
		steps []Step
	}{{"cluster", p.Cluster}, {"hub", p.Hub}} {
		for _, s := range side.steps {
			object := s.Object
			if s.Note != "" {
				object += ", " + s.Note
			}
			fmt.Fprintf(t, "%s\t%s\t%s\n", side.name, s.State, object)
		}
	}
	if err := t.Flush(); err != nil {
		return err
	}
	_, err := io.WriteString(w, b.String())
	return err
}

// Target is how a cluster is reached.
type Target struct {
	Server, TLSServerName, ProxyURL string
	CA                              []byte
	Insecure                        bool
}

// Kubeconfig returns a kubeconfig for the target with a token, as the hub itself would read it. If some flag of the hub has
// to allow it, refused says what and which.
func (t Target) Kubeconfig(token string) (config *kubeconfig.Config, refused string, err error) {
	return t.KubeconfigBy(token, kubeconfig.Rules{})
}

// KubeconfigBy is Kubeconfig for a hub of which the rules are known.
func (t Target) KubeconfigBy(token string, rules kubeconfig.Rules) (config *kubeconfig.Config, refused string, err error) {
	cluster := map[string]any{"server": t.Server}
	if len(t.CA) > 0 {
		cluster["certificate-authority-data"] = t.CA
	}
	for key, value := range map[string]string{"tls-server-name": t.TLSServerName, "proxy-url": t.ProxyURL} {
		if value != "" {
			cluster[key] = value
		}
	}
	if t.Insecure {
		cluster["insecure-skip-tls-verify"] = true
	}
	named := func(body string, content any) []any { return []any{map[string]any{"name": "c", body: content}} }
	raw, err := yaml.Marshal(map[string]any{"apiVersion": "v1", "kind": "Config", "current-context": "c",
		"clusters": named("cluster", cluster), "users": named("user", map[string]any{"token": token}),
		"contexts": named("context", map[string]any{"cluster": "c", "user": "c"})})
	if err != nil {
		return nil, "", fmt.Errorf("write a kubeconfig: %w", err)
	}
	if config, err = kubeconfig.Parse(raw, rules); err == nil {
		return config, "", nil
	}
	refused = err.Error()
	config, err = kubeconfig.Parse(raw, Lenient())
	return config, refused, err
}

// Lenient are rules that allow everything that some flag of the hub allows.
func Lenient() kubeconfig.Rules {
	return kubeconfig.Rules{AllowInsecureTLS: true, AllowProxy: true, AllowMissingCA: true, AllowHTTP: true, AllowServices: true,
		AllowedCIDRs: []netip.Prefix{netip.MustParsePrefix("0.0.0.0/0"), netip.MustParsePrefix("::/0")}}
}

// leastVersion is the first with TokenRequest as the hub asks for it.
const leastVersion = "1.22"

// maxVersion is the longest text that is taken for a version.
const maxVersion = 100

// CheckVersion returns an error if a cluster is older than what the hub can log in to with a renewed token.
func CheckVersion(gitVersion string) error {
	v, err := version.ParseGeneric(gitVersion)
	if err != nil || excerpt.Visible(gitVersion) != gitVersion || len(gitVersion) > maxVersion {
		return fmt.Errorf("the server does not say which version of Kubernetes it is: is it an API server?")
	}
	if v.LessThan(version.MustParseGeneric(leastVersion)) {
		return fmt.Errorf("the cluster runs Kubernetes %s, which gives no ServiceAccount tokens that can be renewed: upgrade it to %s or newer",
			v, leastVersion)
	}
	return nil
}

// maxSkew is how far two clocks may be apart without a warning.
const maxSkew = time.Minute

// Skew returns a warning if the clocks of a cluster and of the hub's API server are apart; "" if not. Both were asked at about
// the same time.
func Skew(cluster, hub time.Time) string {
	if cluster.IsZero() || hub.IsZero() {
		return ""
	}
	switch d := cluster.Sub(hub); {
	case d > maxSkew:
		return fmt.Sprintf("the cluster's clock is %s ahead of the hub's: set it, since certificates and tokens go by it", d.Round(time.Second))
	case d < -maxSkew:
		return fmt.Sprintf("the cluster's clock is %s behind the hub's: set it, since certificates and tokens go by it", (-d).Round(time.Second))
	}
	return ""
}
