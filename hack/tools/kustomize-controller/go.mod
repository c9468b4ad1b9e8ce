module github.com/chandler-hub/chandler/hack/tools/kustomize-controller

go 1.26.0

require github.com/fluxcd/kustomize-controller v1.9.5

replace (
	github.com/fluxcd/pkg/artifact => github.com/fluxcd/pkg/artifact v0.18.1
	github.com/opencontainers/go-digest => github.com/opencontainers/go-digest v1.0.1-0.20220411205349-bde1400a84be
	sigs.k8s.io/kustomize/api => sigs.k8s.io/kustomize/api v0.21.1
	sigs.k8s.io/kustomize/kyaml => sigs.k8s.io/kustomize/kyaml v0.21.1
)
