// SPDX-License-Identifier: Apache-2.0

package diff

import (
	"context"
	"fmt"
	"os"
	"slices"
	"strings"

	appsv1 "k8s.io/api/apps/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	hubv1 "github.com/chandler-hub/chandler/api/v1alpha1"
	"github.com/chandler-hub/chandler/internal/cli/exit"
	"github.com/chandler-hub/chandler/internal/cli/fleet"
	"github.com/chandler-hub/chandler/internal/cli/input"
	"github.com/chandler-hub/chandler/internal/compile"
	"github.com/chandler-hub/chandler/internal/diff"
	"github.com/chandler-hub/chandler/internal/hubconfig"
	"github.com/chandler-hub/chandler/internal/preview"
	"github.com/chandler-hub/chandler/internal/snapshot"
)

// againstHub compares files with the live hub. What the files do not have stays as it is, unless --prune says that it goes.
func (o *Options) againstHub(ctx context.Context) (*diff.Input, error) {
	next, err := o.newFiles(ctx)
	if err != nil {
		return nil, err
	}
	there, err := fleet.Read(ctx, &o.Connection)
	if err != nil {
		return nil, exit.Advise(err, "--against DIR|REVISION compares files without a hub")
	}
	in := &diff.Input{From: "the hub", To: strings.Join(o.Names, ", ")}
	all := whole(next, there.Objects)
	if o.Prune {
		all = preview.Complete(next, there.Objects, func(one *preview.Object) bool { return !preview.IsDelivered(one) })
	} else if n := delivered(all) - delivered(next); n > 0 {
		in.Notes = append(in.Notes, fmt.Sprintf("%d of the hub's AddonSets and Teams, which the files do not have, stay as they are; with "+
			"--prune they count as removed", n))
	}
	return in, o.fleets(in, there, there.Objects, all)
}

func delivered(objects []preview.Object) (n int) {
	for i := range objects {
		if preview.IsDelivered(&objects[i]) {
			n++
		}
	}
	return n
}

// fleets makes both sides of objects of the live hub.
func (o *Options) fleets(in *diff.Input, from *fleet.Fleet, old, next []preview.Object) (err error) {
	o.Preview.Shared = o.Reader.Hub
	in.Options = o.Preview
	if in.Before, err = preview.NewFleet(old, o.Preview.Origins); err != nil {
		return err
	}
	if in.After, err = preview.NewFleet(next, o.Preview.Origins); err != nil {
		return err
	}
	in.Before.ReadBy(from.Document)
	in.After.ReadBy(from.Document)
	in.Before.SourcesBy(from.Source)
	in.After.SourcesBy(from.Source)
	o.asked = from
	return nil
}

// betweenRevisions compares two revisions of a set, on the clusters that the set has now.
func (o *Options) betweenRevisions(ctx context.Context) (*diff.Input, error) {
	there, err := fleet.Read(ctx, &o.Connection)
	if err != nil {
		return nil, err
	}
	found, name, err := o.revisions(ctx)
	if err != nil {
		return nil, err
	}
	in := &diff.Input{From: "revision " + o.Revisions[0], To: "revision " + o.Revisions[1]}
	var sides [2][]preview.Object
	var pins [2]*compile.Pins
	for i := range found {
		spec, held, err := compile.Content(found[i].Data.Raw)
		if err != nil {
			return nil, fmt.Errorf("ControllerRevision %s: %w", found[i].Name, err)
		}
		pins[i] = held
		for _, one := range there.Objects {
			if one.Set != nil && one.Namespace == name.Namespace && one.Name == name.Name {
				one.Set = withContent(one.Set, spec)
			}
			sides[i] = append(sides[i], one)
		}
	}
	if err := o.fleets(in, there, sides[0], sides[1]); err != nil {
		return nil, err
	}
	in.Before.Pin(name.String(), pins[0])
	in.After.Pin(name.String(), pins[1])
	return in, nil
}

// revisions reads the revisions that are compared, which must be of one set, and that set's name.
func (o *Options) revisions(ctx context.Context) (out []appsv1.ControllerRevision, set types.NamespacedName, err error) {
	names, list := o.Revisions, &appsv1.ControllerRevisionList{}
	if err := o.Client.List(ctx, list, client.InNamespace(*o.Flags.Namespace), client.HasLabels{hubv1.AddonSetLabel}); err != nil {
		return nil, set, fmt.Errorf("list the ControllerRevisions: %w", err)
	}
	for _, name := range names {
		at := slices.IndexFunc(list.Items, func(one appsv1.ControllerRevision) bool {
			owner := metav1.GetControllerOf(&one)
			return one.Name == name && owner != nil && owner.Kind == preview.SetKind.Kind
		})
		if at < 0 {
			return nil, set, fmt.Errorf("there is no revision %q of an AddonSet: `chandler rollout history SET` lists them", name)
		}
		one := list.Items[at]
		of := types.NamespacedName{Namespace: one.Namespace, Name: metav1.GetControllerOf(&one).Name}
		if len(out) > 0 && of != set {
			return nil, set, fmt.Errorf("revision %q is of AddonSet %s, and %q of %s: write two of one set", names[0], set, name, of)
		}
		set, out = of, append(out, one)
	}
	return out, set, nil
}

// withContent returns a set with the content of a revision.
func withContent(set *hubv1.AddonSet, content *hubv1.AddonSetSpec) *hubv1.AddonSet {
	out := set.DeepCopy()
	out.Spec.DependsOn, out.Spec.Sources, out.Spec.Addons = content.DependsOn, content.Sources, content.Addons
	out.Spec.Variables, out.Spec.VariablesFrom, out.Spec.Overlays = content.Variables, content.VariablesFrom, content.Overlays
	return out
}

// known reads what is known of the fleet beside the files: an export, or files.
func (o *Options) known(ctx context.Context, in *diff.Input) ([]preview.Object, error) {
	var out []preview.Object
	from := &input.Files{Names: o.FleetFiles, Preview: o.Preview, Stdin: o.In, Stderr: o.ErrOut}
	files, err := from.Read(ctx)
	if err != nil {
		return nil, err
	}
	for _, one := range files {
		s, err := snapshot.Read(one.Name, one.Raw)
		switch {
		case err != nil:
			return nil, err
		case s != nil:
			if err := hubconfig.Adopt(o.Written, s.Hub); err != nil {
				return nil, fmt.Errorf("%s: %w", one.Name, err)
			}
			if err := o.Reader.Hub.TakeRegistrationRules(s.Hub); err != nil {
				return nil, fmt.Errorf("%s: %w", one.Name, err)
			}
			if in.Snapshot.IsZero() || s.Taken.Time.Before(in.Snapshot) {
				in.Snapshot = s.Taken.Time
			}
			out = append(out, s.Objects(one.Name)...)
		default:
			out = append(out, from.Objects([]input.File{one})...)
		}
	}
	if from.Errors > 0 {
		return nil, fmt.Errorf("%w in what is known of the fleet", from.Result())
	}
	return out, nil
}

// isFile returns whether there is a file or folder of a name.
func isFile(name string) bool {
	_, err := os.Stat(name)
	return err == nil || name == "-"
}

// whole returns objects together with what is known of the fleet beside them.
func whole(objects, known []preview.Object) []preview.Object {
	return preview.Complete(objects, known, func(*preview.Object) bool { return true })
}

// newFiles reads what is new. Nothing is compared if some of it cannot be read: that would look as if it were gone.
func (o *Options) newFiles(ctx context.Context) ([]preview.Object, error) {
	files, err := o.Read(ctx)
	if err != nil {
		return nil, err
	}
	next := o.Objects(files)
	o.Booleans(files)
	if o.Errors > 0 {
		return nil, fmt.Errorf("%w in what is new: nothing is compared", o.Result())
	}
	return next, nil
}

// oldFiles reads what is there now.
func (o *Options) oldFiles(ctx context.Context) ([]preview.Object, error) {
	old := &input.Files{Names: o.Against, Preview: o.Preview, Stdin: o.In, Stderr: o.ErrOut}
	var inputs []input.File
	var err error
	if len(o.Against) > 1 || isFile(o.Against[0]) {
		inputs, err = old.Read(ctx)
	} else {
		inputs, err = input.AtRevision(ctx, o.Against[0], o.Names)
	}
	if err != nil {
		return nil, err
	}
	objects := old.Objects(inputs)
	o.Errors += old.Errors
	return objects, nil
}
