module github.com/chandler-hub/chandler/hack/tools/flux-2.7/helm-controller

go 1.26.0

require github.com/fluxcd/helm-controller v1.4.3

replace (
	github.com/opencontainers/go-digest => github.com/opencontainers/go-digest v1.0.1-0.20231025023718-d50d2fec9c98
	sigs.k8s.io/kustomize/api => sigs.k8s.io/kustomize/api v0.20.1
	sigs.k8s.io/kustomize/kyaml => sigs.k8s.io/kustomize/kyaml v0.20.1
)
