// SPDX-License-Identifier: Apache-2.0

package foreign

import (
	"regexp"
	"strings"

	"github.com/chandler-hub/chandler/internal/expression"
)

// dialect is how a tool writes templates: patterns of what stands between the braces, and the expression for each.
type dialect []struct {
	pattern    *regexp.Regexp
	expression string
}

func (d dialect) with(pattern, expression string) dialect {
	return append(d, struct {
		pattern    *regexp.Regexp
		expression string
	}{regexp.MustCompile("^" + pattern + "$"), expression})
}

const (
	field = `[A-Za-z_][A-Za-z0-9_]*`
	key   = `[A-Za-z0-9._/-]+`
)

// clusterAPI is the dialect of what renders Go templates over the Cluster of Cluster API.
var clusterAPI = dialect{}.
	with(`\.Cluster\.metadata\.name`, "cluster.name").
	with(`\.Cluster\.metadata\.namespace`, "cluster.namespace").
	with(`\.ClusterName`, "cluster.name").
	with(`\.ClusterNamespace`, "cluster.namespace").
	with(`\.Cluster\.metadata\.labels\.(`+field+`)`, "cluster.labels['$1']").
	with(`index \.Cluster\.metadata\.labels "(`+key+`)"`, "cluster.labels['$1']").
	with(`index \.Cluster\.metadata\.annotations "(`+key+`)"`, "cluster.annotations['$1']").
	with(`\.Cluster\.spec\.controlPlaneEndpoint\.host`, "cluster.apiServer.host").
	with(`\.Cluster\.spec\.controlPlaneEndpoint\.port`, "cluster.apiServer.port").
	with(`index \.Cluster\.spec\.clusterNetwork\.pods\.cidrBlocks (\d+)`, "cluster.podCIDRs[$1]").
	with(`index \.Cluster\.spec\.clusterNetwork\.services\.cidrBlocks (\d+)`, "cluster.serviceCIDRs[$1]").
	with(`\.Cluster\.spec((\.`+field+`)+)`, "origin.spec$1")

// argo is that of Argo CD's generator of clusters, in both of its forms.
var argo = dialect{}.
	with(`\.?name(Normalized)?`, "cluster.name").
	with(`\.?metadata\.labels\.(`+key+`)`, "cluster.labels['$1']").
	with(`index \.metadata\.labels "(`+key+`)"`, "cluster.labels['$1']").
	with(`\.?metadata\.annotations\.(`+key+`)`, "cluster.annotations['$1']").
	with(`index \.metadata\.annotations "(`+key+`)"`, "cluster.annotations['$1']")

// rancher is that of Rancher Fleet, which writes ${ … }.
var rancher = dialect{}.
	with(`\.?ClusterName`, "cluster.name").
	with(`\.?ClusterNamespace`, "cluster.namespace").
	with(`\.?ClusterLabels\.(`+field+`)`, "cluster.labels['$1']").
	with(`index \.ClusterLabels "(`+key+`)"`, "cluster.labels['$1']").
	with(`get \.ClusterLabels "(`+key+`)"`, "cluster.labels['$1']")

var holes = regexp.MustCompile(`\{\{-?\s*(.*?)\s*-?\}\}|\$\{\s*(.*?)\s*\}`)

// text writes expressions in place of the templates of a text, and returns those for which there is none.
func (d dialect) text(s string) (out string, left []string) {
	s = expression.Escape(s)
	return holes.ReplaceAllStringFunc(s, func(whole string) string {
		m := holes.FindStringSubmatch(whole)
		inner := m[1] + m[2]
		for _, one := range d {
			if one.pattern.MatchString(inner) {
				return "<< " + one.pattern.ReplaceAllString(inner, one.expression) + " >>"
			}
		}
		if strings.HasPrefix(whole, "{{") {
			left = append(left, whole)
		}
		return whole
	}), left
}

// all does so in all texts of a value.
func (d dialect) all(v any) (out any, left []string) {
	switch v := v.(type) {
	case string:
		return d.text(v)
	case map[string]any:
		m := make(map[string]any, len(v))
		for k, x := range v {
			var more []string
			m[k], more = d.all(x)
			left = append(left, more...)
		}
		return m, left
	case []any:
		list := make([]any, len(v))
		for i := range v {
			var more []string
			list[i], more = d.all(v[i])
			left = append(left, more...)
		}
		return list, left
	}
	return v, nil
}
