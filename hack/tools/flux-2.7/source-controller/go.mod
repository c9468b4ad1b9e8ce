module github.com/chandler-hub/chandler/hack/tools/flux-2.7/source-controller

go 1.26.0

require github.com/fluxcd/source-controller v1.7.3

replace (
	github.com/opencontainers/go-digest => github.com/opencontainers/go-digest v1.0.1-0.20220411205349-bde1400a84be
)
