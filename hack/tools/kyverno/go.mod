module github.com/chandler-hub/chandler/hack/tools/kyverno

go 1.26.0

require github.com/kyverno/kyverno v1.14.4
