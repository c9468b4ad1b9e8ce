module github.com/chandler-hub/chandler/hack/tools/cni

go 1.26

require github.com/containernetworking/plugins v1.9.1
