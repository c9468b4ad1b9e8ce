// SPDX-License-Identifier: Apache-2.0

package fluxstate

import (
	"strings"

	fluxmeta "github.com/fluxcd/pkg/apis/meta"

	"github.com/chandler-hub/chandler/internal/excerpt"
)

// maxMessage bounds a message that is copied into a status, in characters: Flux passes on texts of a remote server.
// The message does not say how much was left out, since that may differ from retry to retry, and each change would be
// a write.
const maxMessage = 300

// mark comes before what may be the words of a workload cluster, which its administrator chooses. People read them beside the
// platform's own, in the status of a platform's set too.
const mark = "Flux says, perhaps in the cluster's words: "

// ownWords are the reasons with which Flux fails before it asks the cluster anything.
var ownWords = map[string]bool{
	fluxmeta.DependencyNotReadyReason: true, fluxmeta.ArtifactFailedReason: true, fluxmeta.BuildFailedReason: true,
	fluxmeta.InvalidCELExpressionReason: true, "AccessDenied": true, "SourceNotReady": true, "HelmChartNotReady": true,
	"ValuesError": true, "RESTClientError": true,
}

// Words returns a failure of Flux for a status or an event: in one line, without control characters, and cut. What the cluster may have
// said is quoted, and marked as such: no quote within ends the quotation.
func Words(reason, message string) string {
	text := excerpt.Line(message)
	if ownWords[reason] {
		return excerpt.Cut(reason+": "+text, maxMessage)
	}
	text = strings.ReplaceAll(text, `"`, "'")
	return reason + ": " + mark + `"` + excerpt.Cut(text, max(1, maxMessage-len(reason+": "+mark+`""`))) + `"`
}
