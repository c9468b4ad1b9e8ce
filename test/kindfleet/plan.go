// SPDX-License-Identifier: Apache-2.0

package kindfleet

import (
	"fmt"
	"path/filepath"
	"strings"
	"time"

	"github.com/chandler-hub/chandler/test/localfleet/parts"
)

const (
	// Image is the hub's image. It is built from the checkout and loaded into the node, so no registry is needed.
	Image = "chandler-hub"
	// Tag of the image.
	Tag = "e2e"

	// certManager issues the certificates of Kamaji's webhooks.
	certManager = "https://github.com/cert-manager/cert-manager/releases/download/v1.16.2/cert-manager.yaml"

	fluxNamespace = "flux-system"
	patience      = "10m" // for images to be pulled
)

// Options say what a plan is for.
type Options struct {
	// Name of the kind cluster.
	Name string
	// Root is the checkout.
	Root string
	// Dir is an existing folder for the kubeconfig and for generated files.
	Dir string
	// Modules are the folders of the modules to install, by the names of their parts; see Modules.
	Modules map[string]string
	// Keep keeps the cluster afterwards.
	Keep bool
	// Tests are the arguments of the go command that runs the tests.
	Tests []string
}

// Kubeconfig is the file into which kind writes the administrator's kubeconfig.
func (o Options) Kubeconfig() string { return filepath.Join(o.Dir, "kubeconfig") }

// Step is one command.
type Step struct {
	// Name says what it does.
	Name string
	Argv []string
	// Stdin is its standard input.
	Stdin string
	// Tries is how often it is tried at most; 0 means once.
	Tries int
}

// Plan is a list of commands, in order.
type Plan struct {
	Steps []Step
	// After are the steps that run in any case, also if a step fails.
	After []Step
	// Pause is the time between two tries of a step.
	Pause time.Duration
	// Env is added to the environment of all commands.
	Env []string
}

// New returns the plan. It is pure, and runs nothing.
func New(o Options) Plan {
	kubectl := func(name string, argv ...string) Step {
		return Step{Name: name, Argv: append([]string{"kubectl"}, argv...)}
	}
	p := Plan{Pause: 10 * time.Second, Env: []string{"KUBECONFIG=" + o.Kubeconfig(), "CHANDLER_PLATFORM=kind"}}
	p.Steps = []Step{
		{Name: "build the hub's image", Argv: []string{"docker", "build", "--tag", Image + ":" + Tag, o.Root}},
		{Name: "create the cluster", Argv: []string{"kind", "create", "cluster", "--name", o.Name, "--wait", "5m"}},
		{Name: "load the image into it", Argv: []string{"kind", "load", "docker-image", Image + ":" + Tag, "--name", o.Name}},
		kubectl("install cert-manager", "apply", "--server-side", "--filename", certManager),
		kubectl("wait for cert-manager", "wait", "--namespace", "cert-manager", "--for=condition=Available", "deployment",
			"--all", "--timeout="+patience),
		{Name: "install Kamaji", Argv: []string{
			"helm", "upgrade", "--install", "kamaji", filepath.Join(o.Modules[parts.Kamaji], "charts", "kamaji"), "--namespace",
			"kamaji-system", "--create-namespace",
			"--set", "telemetry.disabled=true", "--wait", "--timeout", patience,
		}, Tries: 6}, // cert-manager's webhook answers a while after its pod is available
	}
	for _, c := range FluxControllers {
		p.Steps = append(p.Steps, kubectl("install "+c, "apply", "--server-side", "--kustomize", filepath.Join(o.Dir, c, "overlay")))
	}
	p.Steps = append(p.Steps,
		Step{Name: "let Flux apply", Argv: []string{"kubectl", "apply", "--server-side", "--filename", "-"}, Stdin: fluxRights},
		kubectl("wait for Flux", "wait", "--namespace", fluxNamespace, "--for=condition=Available", "deployment", "--all", "--timeout="+patience),
		Step{Name: "install the hub", Argv: []string{
			"helm", "upgrade", "--install", "chandler", filepath.Join(o.Root, "charts", "chandler"), "--namespace", "chandler-system",
			"--create-namespace",
			"--set", "image.repository=" + Image, "--set", "image.tag=" + Tag, "--set", "extraArgs={" + strings.Join(hubArgs, ",") + "}",
			"--wait", "--timeout", patience,
		}},
		Step{Name: "run the tests", Argv: append([]string{"go"}, o.Tests...)},
	)
	if !o.Keep {
		p.After = []Step{{Name: "delete the cluster", Argv: []string{"kind", "delete", "cluster", "--name", o.Name}}}
	}
	return p
}

// hubArgs make the hub fast enough for a test.
var hubArgs = []string{"--deselection-delay=1s", "--probe-interval=5s"}

// FluxControllers are the controllers that the hub needs, by the names of their parts.
var FluxControllers = []string{parts.SourceController, parts.KustomizeController, parts.HelmController}

// fluxRights are the rights that `flux install` gives its controllers: they apply whatever they are told to.
const fluxRights = `apiVersion: rbac.authorization.k8s.io/v1
kind: ClusterRoleBinding
metadata: {name: cluster-reconciler-flux-system}
roleRef: {apiGroup: rbac.authorization.k8s.io, kind: ClusterRole, name: cluster-admin}
subjects: [{kind: ServiceAccount, name: default, namespace: flux-system}]
`

// overlay returns the kustomization of one of Flux's controllers, from the configuration in its module: its CRDs, its
// Deployment and its Service. It does not use config/default, which has a namespace of its own and addresses of the
// other controllers.
func overlay(controller string) map[string]string {
	return map[string]string{
		"namespace.yaml": "apiVersion: v1\nkind: Namespace\nmetadata: {name: " + fluxNamespace + "}\n",
		"kustomization.yaml": fmt.Sprintf(`apiVersion: kustomize.config.k8s.io/v1beta1
kind: Kustomization
namespace: %s
resources: [namespace.yaml, ../config/crd, ../config/manager] # of %s
`, fluxNamespace, controller),
	}
}
