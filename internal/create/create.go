// SPDX-License-Identifier: Apache-2.0

// Package create writes the objects that `chandler create` makes: a Team with its hub namespace and its people's rights, an
// AddonSet, a Flux source. It is pure: what a user asks for goes in, and objects come out, checked as `chandler render`
// checks them.
package create

import (
	"encoding/json"
	"errors"
	"fmt"
	"net/url"
	"slices"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/api/validate/content"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/labels"

	"github.com/chandler-hub/chandler/internal/excerpt"
)

// Object is what is common to all objects that a command makes.
type Object struct {
	Namespace, Name string
	Labels          map[string]string
}

// document returns an object without a spec.
func document(apiVersion, kind string, o Object) *unstructured.Unstructured {
	u := &unstructured.Unstructured{Object: map[string]any{}}
	u.SetAPIVersion(apiVersion)
	u.SetKind(kind)
	u.SetName(o.Name)
	if o.Namespace != "" {
		u.SetNamespace(o.Namespace)
	}
	if len(o.Labels) > 0 {
		u.SetLabels(o.Labels)
	}
	return u
}

// set sets a field, unless the value is empty.
func set(m map[string]any, v any, path ...string) {
	switch v := v.(type) {
	case string:
		if v == "" {
			return
		}
	case bool:
		if !v {
			return
		}
	case time.Duration:
		if v != 0 {
			set(m, excerpt.Duration(v), path...)
		}
		return
	case []string:
		if len(v) == 0 {
			return
		}
		list := make([]any, len(v))
		for i := range v {
			list[i] = v[i]
		}
		_ = unstructured.SetNestedField(m, list, path...) // every parent is an object that this package made
		return
	}
	_ = unstructured.SetNestedField(m, v, path...) // the same
}

// check returns what is wrong with the names of an object.
func (o Object) check(what string) error {
	if problems := content.IsDNS1123Subdomain(o.Name); len(problems) > 0 {
		return fmt.Errorf("%s %q: the name is not valid: %s", what, o.Name, problems[0])
	}
	if o.Namespace == "" {
		return nil
	}
	if problems := content.IsDNS1123Label(o.Namespace); len(problems) > 0 {
		return fmt.Errorf("%s %q: the namespace %q is not valid: %s", what, o.Name, o.Namespace, problems[0])
	}
	return nil
}

// selector writes a selector of clusters into a spec, from the texts that --selector takes. all stands for every cluster.
func selector(spec map[string]any, text string, all bool) error {
	switch {
	case all && text != "":
		return errors.New("--all and --selector exclude each other: write one of them")
	case all:
		spec["selectAll"] = true
		return nil
	case text == "":
		return errors.New("which clusters? Write --selector, such as --selector env=staging, or --all for every cluster")
	}
	parsed, err := metav1.ParseToLabelSelector(text)
	if err != nil {
		return fmt.Errorf("--selector %q: %w; write it as kubectl does, such as env=staging or 'env in (staging, production)'", text, err)
	}
	if s, err := metav1.LabelSelectorAsSelector(parsed); err != nil || s.Empty() || s.String() == labels.Nothing().String() {
		return fmt.Errorf("--selector %q selects nothing; write it as kubectl does, such as env=staging", text)
	}
	raw, err := json.Marshal(parsed)
	if err != nil {
		return fmt.Errorf("--selector %q: %w", text, err)
	}
	out := map[string]any{}
	if err := json.Unmarshal(raw, &out); err != nil {
		return fmt.Errorf("--selector %q: %w", text, err)
	}
	spec["clusterSelector"] = out
	return nil
}

// checkURL refuses what is no address, and one with a password in it: all readers of the object would read that too. The
// error never holds the address of the latter.
func checkURL(flag, text string, schemes ...string) error {
	u, err := url.Parse(text)
	switch {
	case err != nil || u.Host == "" || !slices.Contains(schemes, u.Scheme):
		if strings.Contains(text, "@") {
			text = "…" + text[strings.LastIndex(text, "@"):]
		}
		return fmt.Errorf("%s %q is not an address: write one that begins with %s", flag, text, strings.Join(schemes, "://, ")+"://")
	}
	if _, has := u.User.Password(); has || u.User != nil && u.Scheme != "ssh" {
		return fmt.Errorf("%s holds a user or a password: put them into a Secret, and name that by --secret-ref", flag)
	}
	return nil
}
