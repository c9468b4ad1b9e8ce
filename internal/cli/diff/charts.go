// SPDX-License-Identifier: Apache-2.0

package diff

import (
	"context"
	"fmt"
	"maps"
	"os"
	"path"
	"path/filepath"
	"time"

	"github.com/spf13/pflag"

	"github.com/chandler-hub/chandler/internal/cli/command"
	"github.com/chandler-hub/chandler/internal/cli/input"
	"github.com/chandler-hub/chandler/internal/fetch"
	"github.com/chandler-hub/chandler/internal/sources"
)

// chartOptions are the flags that have diff look at the objects of clusters, and what it looks with.
type chartOptions struct {
	Charts, Live                      bool
	LocalSources, AgainstLocalSources []string
	Clusters                          []string
	AuthFile                          string
	Timeout                           time.Duration
	store                             *sources.Store
	oldLocal, newLocal                map[string]string
}

func (o *chartOptions) addCharts(f *pflag.FlagSet) {
	f.BoolVar(&o.Charts, "charts", false,
		"also compare the objects that charts and folders make on the clusters")
	f.BoolVar(&o.Live, "live", false,
		"also try the change on some clusters, by a server-side dry run")
	f.StringSliceVar(&o.Clusters, "cluster", nil, "try it on these clusters, NAME or NAMESPACE/NAME (with --live)")
	f.StringSliceVar(&o.LocalSources, "local-sources", nil, "read Flux sources from a folder: KIND/NAMESPACE/NAME=PATH[,...]; of a Git "+
		"revision, PATH is read as it is there")
	f.StringSliceVar(&o.AgainstLocalSources, "against-local-sources", nil, "the same, only for what is compared with")
	f.StringVar(&o.AuthFile, "auth-file", "", "credentials for charts and folders, as in a Docker config.json")
	command.AddTimeout(f, &o.Timeout, 10*time.Minute, "how long --charts and --live may take")
}

// prepareCharts makes what objects are made with. The caller calls the function when it is done.
func (o *chartOptions) prepareCharts(ctx context.Context, against []string) (done func(), err error) {
	if o.store, err = sources.New(); err != nil {
		return nil, err
	}
	done = o.store.Close
	if o.AuthFile != "" {
		raw, err := os.ReadFile(o.AuthFile)
		if err == nil {
			o.store.Auth, err = fetch.ParseAuth(raw)
		}
		if err != nil {
			return done, fmt.Errorf("--auth-file %s: %w", o.AuthFile, err)
		}
	}
	if o.newLocal, err = sources.Local("--local-sources", o.LocalSources); err != nil {
		return done, err
	}
	o.oldLocal = maps.Clone(o.newLocal)
	if len(against) == 1 && !isFile(against[0]) {
		for name, at := range o.newLocal {
			if o.oldLocal[name], err = o.atRevision(ctx, against[0], at); err != nil {
				return done, fmt.Errorf("--local-sources %s: %w", name, err)
			}
		}
	}
	only, err := sources.Local("--against-local-sources", o.AgainstLocalSources)
	maps.Copy(o.oldLocal, only)
	return done, err
}

// atRevision writes a folder as it is at a Git revision.
func (o *chartOptions) atRevision(ctx context.Context, revision, folder string) (string, error) {
	files, err := input.RegularAt(ctx, revision, folder)
	if err != nil {
		return "", err
	}
	dir, err := os.MkdirTemp(o.store.Dir, "revision-")
	if err != nil {
		return "", err
	}
	root, err := os.OpenRoot(dir)
	if err != nil {
		return "", err
	}
	defer func() { _ = root.Close() }()
	for _, f := range files {
		if err := root.MkdirAll(path.Dir(f.Name), 0o700); err != nil {
			return "", err
		}
		if err := root.WriteFile(f.Name, f.Raw, 0o600); err != nil {
			return "", err
		}
	}
	if info, err := os.Stat(folder); err == nil && !info.IsDir() {
		return filepath.Join(dir, filepath.Base(folder)), nil
	}
	return dir, nil
}
