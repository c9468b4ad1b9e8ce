module github.com/chandler-hub/chandler/hack/tools/flux2

go 1.26.0

require github.com/fluxcd/flux2/v2 v2.9.5
