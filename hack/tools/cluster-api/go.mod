module github.com/chandler-hub/chandler/hack/tools/cluster-api

go 1.26.0

require sigs.k8s.io/cluster-api v1.13.6
