// SPDX-License-Identifier: Apache-2.0

package kubeconfig

import (
	"fmt"
	"slices"
)

// Parse checks raw, a kubeconfig in YAML or JSON, against the rules and returns the one cluster and user of its current
// context. The error is always an *Error.
//
// What would run a program or read a file is refused wherever it stands, as Flux does (fluxcd/pkg
// runtime/client/kubeconfig.go, ValidateKubeConfig); everything else is judged only in the cluster and the user in use, and
// other contexts are dropped. The context's namespace and all extensions are dropped too.
//
// If current-context is missing or empty and there is exactly one context, that one is taken. clientcmd and Flux refuse such
// a kubeconfig, but it can mean only one thing, and what Flux gets to see is the Minimal one, which always names its context.
func Parse(raw []byte, rules Rules) (*Config, error) {
	root, err := load(raw)
	if err != nil {
		return nil, err
	}
	if err := checkType(root); err != nil {
		return nil, err
	}
	clusters, err := root.entries("clusters", "cluster")
	if err != nil {
		return nil, err
	}
	users, err := root.entries("users", "user")
	if err != nil {
		return nil, err
	}
	if err := checkEverywhere(clusters, users, rules); err != nil {
		return nil, err
	}
	cluster, user, err := current(root, rules.Context, clusters, users)
	if err != nil {
		return nil, err
	}
	c := &Config{rules: rules}
	if err := c.readCluster(cluster, rules); err != nil {
		return nil, err
	}
	if err := c.readUser(user, rules); err != nil {
		return nil, err
	}
	return c.finish()
}

// checkType refuses other Kubernetes objects. Both fields may be missing, as clientcmd allows.
func checkType(root mapping) error {
	if root.get("clusters") == nil && (root.get("tlsClientConfig") != nil || root.get("bearerToken") != nil) {
		return malformed("",
			"the value is of an Argo CD cluster Secret, and no kubeconfig; write a kubeconfig for the same server into key value")
	}
	for _, want := range [][2]string{{"apiVersion", "v1"}, {"kind", "Config"}} { // no map: its order changes
		got, err := root.str(want[0])
		if err != nil {
			return err
		}
		if got != "" && got != want[1] {
			return malformed("", "the value is not a kubeconfig: it must have apiVersion v1 and kind Config")
		}
	}
	return nil
}

// checkEverywhere refuses programs and file paths in every entry. An empty string counts as absent, an empty exec does not:
// clientcmd takes it for a plugin.
func checkEverywhere(clusters, users []entry, rules Rules) error {
	for _, u := range users {
		for _, key := range []string{"exec", "auth-provider"} {
			if u.body.get(key) != nil {
				return ruleExec.refuse(rules, u.body.field(key), "authentication plugins are not allowed")
			}
		}
		for _, key := range []string{"tokenFile", "client-certificate", "client-key"} {
			if u.body.has(key) {
				return ruleFileReference.refuse(rules, u.body.field(key), "paths to files are not allowed")
			}
		}
	}
	for _, c := range clusters {
		if c.body.has("certificate-authority") {
			return ruleFileReference.refuse(rules, c.body.field("certificate-authority"), "paths to files are not allowed")
		}
	}
	return nil
}

// current resolves a context to its cluster and user: the one of a name, or, if that is empty, the current one.
func current(root mapping, name string, clusters, users []entry) (cluster, user mapping, err error) {
	fail := func(field, message string) (mapping, mapping, error) {
		return mapping{}, mapping{}, &Error{Reason: ReasonContext, Field: field, Message: message}
	}
	contexts, err := root.entries("contexts", "context")
	if err != nil {
		return mapping{}, mapping{}, err
	}
	field := "contexts"
	if name == "" {
		field = "current-context"
		if name, err = root.str(field); err != nil {
			return mapping{}, mapping{}, err
		}
	}
	if name == "" && len(contexts) != 1 {
		return fail("current-context", "is missing, and there is not exactly one context; name the context to use")
	}
	i := slices.IndexFunc(contexts, func(e entry) bool { return e.name == name || name == "" })
	if i < 0 {
		if field == "contexts" {
			return fail(field, fmt.Sprintf("lacks context %q, which its origin names; correct one of them", name))
		}
		return fail(field, "names a context that is not in contexts; correct it")
	}
	context := contexts[i].body
	cluster, ok, err := refer(context, "cluster", clusters)
	if err != nil {
		return mapping{}, mapping{}, err
	}
	if !ok {
		return fail(context.field("cluster"), "names a cluster that is not in clusters, or that is empty; correct it")
	}
	user, ok, err = refer(context, "user", users)
	if err != nil {
		return mapping{}, mapping{}, err
	}
	if !ok {
		return fail(context.field("user"), "names a user that is not in users, or that is empty; correct it")
	}
	return cluster, user, nil
}

// refer follows the name under key in a context.
func refer(context mapping, key string, entries []entry) (mapping, bool, error) {
	name, err := context.str(key)
	if err != nil {
		return mapping{}, false, err
	}
	for _, e := range entries {
		if e.name == name && name != "" && e.body.node != nil {
			return e.body, true, nil
		}
	}
	return mapping{}, false, nil
}

// Fields of the entries in use whose meaning is known: read, refused, or harmless to drop.
var (
	clusterFields = []string{
		"server", "tls-server-name", "insecure-skip-tls-verify", "certificate-authority", "certificate-authority-data",
		"proxy-url", "disable-compression", "extensions",
	}
	userFields = []string{
		"client-certificate", "client-certificate-data", "client-key", "client-key-data", "token", "tokenFile", "username",
		"password", "as", "as-uid", "as-groups", "as-user-extra", "auth-provider", "exec", "extensions",
	}
)

// checkKnown refuses other fields, without naming them: the key may be a misplaced value.
func checkKnown(m mapping, known []string, rules Rules) error {
	for i := 0; i < len(m.node.Content); i += 2 {
		if !slices.Contains(known, m.node.Content[i].Value) {
			return ruleUnknownField.refuse(rules, m.path, "unknown field"+atLine(m.node.Content[i]))
		}
	}
	return nil
}
