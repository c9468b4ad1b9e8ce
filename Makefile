# SPDX-License-Identifier: Apache-2.0

SHELL := /usr/bin/env bash -o pipefail
GO    ?= go
GOTOOL = $(GO) tool -modfile=hack/gotools/go.mod
ARGS  ?=
FUZZTIME ?= 1m
# The end-to-end tests of make test-fast: the way of an add-on, waves, a dead cluster, leaving, taking over, installing.
FAST ?= ^(TestJourney|TestRollout|TestBreaker|TestTeardown|TestImport|TestInstall)$$
# Other versions, by their pins (test/localfleet/parts).
MATRIX = flux-2.7 kubernetes-1.30
# Helm 3, which Flux 2.7 has, takes a Deployment for ready on a cluster in which no controller runs, as these are.
NOT_ALIKE = TestRollout/(a_bad_edit|somebody_tries)
# How many end-to-end tests run beside each other. Four take 12 GB of memory at most.
PARALLEL ?= 4
COUNT ?= 1
CLUSTERS ?= 500
ADDONS ?= 5
DEAD ?= 0.1
FLUX ?= false
ROLLOUT ?= false
SETS ?= 100
SEEDS ?= 1000
FROM ?= 0
IMAGE ?= chandler-hub:dev
# What is released: the Git tag; for a dry run, what the chart says comes next.
VERSION ?= $(shell sed -n 's/^appVersion: //p' charts/chandler/Chart.yaml)
REGISTRY ?= ghcr.io/chandler-hub

# Everything is built as it is released: without cgo, and without paths of this machine. So tests, programs and the image share one build
# cache: with different flags each dependency would be compiled, and stored, several times.
export CGO_ENABLED ?= 0
export GOFLAGS ?= -trimpath

.DEFAULT_GOAL := help

# What the demo runs; the rest of the tools is for the tests alone.
DEMO_PARTS = etcd kube-apiserver kube-controller-manager kube-scheduler kwok kwok-stages-files kamaji kamaji-files cluster-api-files \
	$(foreach c,source kustomize helm,$(c)-controller $(c)-controller-files)

# Modules of their own, whose parts neither the hub nor the command line has.
MODULES = test/browser hack/release hack/tools/fetch hack/promcheck

# What a real node is made of, beside containerd and runc, which the system has.
NODE_PARTS = kubelet kube-proxy coredns bridge host-local loopback

##@ Try it

.PHONY: demo
demo: ## A management cluster with Flux and the hub, three workload clusters, and add-ons that arrive. ARGS=--once to exit when all is Ready.
	@# The hub is built while the parts are downloaded.
	@$(GO) build -o bin/ ./cmd/hub ./cmd/chandler ./cmd/demo & build=$$!; \
	  $(GO) run ./hack/tools $(DEMO_PARTS) || { kill $$build 2>/dev/null; exit 1; }; \
	  wait $$build && exec bin/demo --hub bin/hub $(ARGS)

##@ Develop

.PHONY: build
build: ## Build the hub and the command line into bin/.
	$(GO) build -o bin/hub ./cmd/hub
	$(GO) build -o bin/chandler ./cmd/chandler

.PHONY: image
image: ## Build the hub's image with Docker: IMAGE=registry.example.org/chandler-hub:v0.1.0
	docker build --tag $(IMAGE) .

.PHONY: tools
tools: ## Download or build etcd, kube-apiserver, Flux and the rest into a cache folder outside the checkout; nothing to do when they are there.
	@$(GO) run ./hack/tools

.PHONY: tools-node
tools-node: tools ## Build kubelet, kube-proxy, CoreDNS and CNI plugins too: minutes, once.
	@$(GO) run ./hack/tools $(NODE_PARTS)

.PHONY: test
test: ## Every test: unit, API server, end to end with real Flux controllers and workload clusters.
	@# The end-to-end tests wait more than they work, so all other tests run beside them.
	@$(MAKE) --no-print-directory -j2 test-packages test-e2e

.PHONY: test-packages
test-packages: tools
	@# GOGC: a test is short and has the memory, and takes a quarter less of the processor.
	GOGC=400 $(GO) run ./hack/slowest -timeout 30m -p 2 $$($(GO) list ./... | grep -v -e /e2e$$ -e /e2e/kamaji$$ -e /e2e/node$$ -e /test/node$$ -e /cmd/demo$$)
	cd internal/manifestchart/enginetest && $(GO) test -count=1 ./...
	cd hack/promcheck && $(GO) test -count=1 ./...
	cd hack/release && $(GO) test ./...
	cd hack/tools/fetch && $(GO) test ./...

.PHONY: test-e2e
test-e2e: tools
	@# Not from the cache: it does not know that these tests build the hub. The two small packages run, one after the other, beside the large
	@# one. API servers and Flux are frugal there; the hub does as it does anywhere (test/localfleet/process.go).
	CHANDLER_FRUGAL=1 $(GO) run ./hack/slowest -timeout 60m -count=1 -p 2 -parallel $(PARALLEL) \
	  $(if $(ONLY_FAST),-run '$(FAST)' ./e2e,./e2e ./e2e/kamaji ./cmd/demo)

.PHONY: test-fast
test-fast: ## Unit tests, the simulation, and six end-to-end tests of the main paths: before you send a change.
	@$(MAKE) --no-print-directory -j2 test-packages test-e2e ONLY_FAST=1

.PHONY: matrix
matrix: ## The main paths with the oldest Flux and Kubernetes that are supported: MATRIX="flux-2.7 kubernetes-1.30". It builds them first, once.
	@for with in $(MATRIX); do export CHANDLER_WITH=$$with; \
	  $(GO) run ./hack/tools && CHANDLER_FRUGAL=1 $(GO) run ./hack/slowest -timeout 40m -count=1 -parallel 3 -run '$(FAST)' -skip '$(NOT_ALIKE)' ./e2e || exit 1; \
	done

.PHONY: night
night: tools ## What is too long for each change: races, 20,000 random days, old defects, fuzzing, every test. It ends with bin/night.md. ARGS="-only seeds,fuzz".
	@mkdir -p bin && $(GO) run ./hack/night $(ARGS)

.PHONY: e2e-kind
e2e-kind: ## The tests of e2e/kamaji on kind, with Kamaji, Flux and the hub as people install them: needs Docker and the internet. ARGS=--plan to see what is done, --keep to keep the cluster.
	@$(GO) build -o bin/e2e-kind ./hack/kind && exec bin/e2e-kind $(ARGS)

.PHONY: e2e-node
e2e-node: tools-node ## One real node in namespaces of its own, with Kamaji, its tenants, Flux and the hub as pods: needs root, containerd and runc (docs/development.md).
	$(GO) test -count=1 -v -p 1 -timeout 20m ./test/node ./e2e/node
	CHANDLER_PLATFORM=node $(GO) test -count=1 -v -timeout 30m ./e2e/kamaji

.PHONY: test-unit
test-unit: ## The tests that need no binaries, in about a minute.
	$(GO) test -short ./api/... ./internal/... ./cmd/... ./controllers/... ./docs ./e2e/expect ./test/{faultproxy,faultyapi,kindfleet,localfleet}/... ./test/node/netpolicy

.PHONY: simulate
simulate: ## The whole hub in memory against random days: SEEDS=10000 FROM=0 (docs/simulation.md). One process per core; the first failing seed of each is shrunk to a short story.
	@$(GO) test -c -o bin/simulation ./test/simulation && cd test/simulation && \
	  cores=$$(getconf _NPROCESSORS_ONLN) && share=$$(( ($(SEEDS) + cores - 1) / cores )) && pids= && \
	  for i in $$(seq 0 $$((cores - 1))); do \
	    ../../bin/simulation -test.run '^TestSeeds$$' -test.timeout 0 -seeds $$share -from $$(( $(FROM) + i * share )) & pids="$$pids $$!"; \
	  done; failed=0; for p in $$pids; do wait $$p || failed=1; done; exit $$failed

.PHONY: defects
defects: ## Put old defects back into the hub, one at a time, and see how many seeds the simulation takes to find each: ARGS="-seeds 300 NAME...".
	@$(GO) run ./test/simulation/defects $(ARGS)

.PHONY: fuzz
fuzz: ## Run every fuzz target for FUZZTIME each (default 1m). What they find becomes a test: go writes it under testdata/fuzz.
	@for pkg in $$($(GO) list ./internal/...); do \
	  for target in $$($(GO) test -list '^Fuzz' $$pkg | grep '^Fuzz'); do \
	    echo "$$pkg $$target"; $(GO) test $$pkg -run '^$$' -fuzz "^$$target\$$" -fuzztime $(FUZZTIME) -fuzzminimizetime 20x || exit 1; \
	  done; \
	done

.PHONY: benchmark
benchmark: ## Measure compiling and rendering, in microseconds and allocations (docs/performance.md).
	$(GO) test -run '^$$' -bench . -benchmem -count $(COUNT) ./internal/render ./internal/expression
	$(GO) test -run '^$$' -bench . -benchtime 1x ./internal/diff

.PHONY: bench
bench: tools ## Measure a hub with a fleet against a bare client in the same run: CLUSTERS=500 ADDONS=5 DEAD=0.1 FLUX=false; or with ROLLOUT=true rollouts: CLUSTERS=500 SETS=100 (docs/performance.md).
	@$(GO) run ./bench -clusters=$(CLUSTERS) -addons=$(ADDONS) -dead=$(DEAD) -flux=$(FLUX) -rollout=$(ROLLOUT) -sets=$(SETS)

.PHONY: bench-check
bench-check: tools ## Measure a fleet of 200 clusters, three minutes, and fail if a quarter is lost against the runs in docs/growth.json; RECORD=3 appends so many runs there instead.
	@$(GO) run ./bench -clusters=200 -noise=15s -commit=$$(git describe --always --dirty) \
	  $(if $(RECORD),-runs=$(RECORD) -record=docs/growth.json,-check=docs/growth.json)

.PHONY: generate
generate: ## Write deepcopy functions, CRDs, RBAC, the references of the API and of the commands, and copy CRDs, RBAC and policies into the chart.
	$(GOTOOL) controller-gen object:headerFile=hack/boilerplate.go.txt paths=./api/...
	$(GOTOOL) controller-gen crd paths=./api/... output:crd:dir=config/crd/bases
	$(GOTOOL) controller-gen rbac:roleName=chandler-hub paths=./controllers/... paths=./internal/origin output:rbac:dir=config/rbac
	$(GOTOOL) crd-ref-docs --source-path=api/v1alpha1 --config=hack/apidoc.yaml --renderer=markdown --output-path=docs/api.md --log-level=ERROR
	$(GO) run ./hack/crds
	@# The commands say themselves what they take: see cmd/chandler/reference_test.go.
	$(GO) test -count=1 ./cmd/chandler -run '^(TestReference|TestOutputSchema)$$' -update >/dev/null
	@# Helm reads nothing outside its chart.
	rm -rf charts/chandler/files && mkdir -p charts/chandler/files/policies
	cp -R config/crd/bases charts/chandler/files/crd && cp config/rbac/role.yaml charts/chandler/files/
	cp $$(ls config/policies/*.yaml | grep -v /kustomization.yaml) charts/chandler/files/policies/

.PHONY: man
man: ## Write the man pages of the command line into dist/man.
	$(GO) test -count=1 ./cmd/chandler -run '^TestManPages$$' -args -man "$(CURDIR)/dist/man" >/dev/null

.PHONY: fmt
fmt: ## Format the code.
	gofmt -w $$(git ls-files '*.go')

.PHONY: lint
lint: ## Format and golangci-lint (.golangci.yml); helm lint, and every kustomization builds.
	@out=$$(gofmt -l $$(git ls-files --cached --others --exclude-standard '*.go')); test -z "$$out" || { echo "not formatted, run make fmt:"; echo "$$out"; exit 1; }
	@$(GO) build -modfile=hack/golangci/go.mod -o bin/golangci-lint github.com/golangci/golangci-lint/v2/cmd/golangci-lint
	@# Each module by itself. That of internal/manifestchart/enginetest is one test, which go test vets; its modules are large.
	@for dir in . $(MODULES); do \
	  echo "golangci-lint run $$dir"; (cd $$dir && "$(CURDIR)/bin/golangci-lint" run --config "$(CURDIR)/.golangci.yml" ./...) || exit 1; \
	done
	hack/lint-manifests.sh

.PHONY: verify
verify: ## Check that generated files and go.mod are up to date.
	hack/verify.sh

.PHONY: site
site: ## Build the pages into bin/site: static files with a search, and llms.txt. Needs node and npm; SITE_BASE=/chandler/ below another root.
	hack/site/build.sh

##@ Release

.PHONY: release release-dry-run
release: ## Make what a release publishes into dist/, and check it; publishes nothing. Needs a clean checkout of the tag: VERSION=v0.1.0 REGISTRY=ghcr.io/chandler-hub
release-dry-run: ## The same for a checkout with changes and without a tag. Needs no network.
release release-dry-run:
	@$(GO) run ./hack/tools helm kustomize >/dev/null
	@$(GO) -C hack/krew build -o ../../bin/krew sigs.k8s.io/krew/cmd/krew
	@$(GO) -C hack/release run . -version "$(VERSION)" -registry "$(REGISTRY)" $(if $(filter %-dry-run,$@),-dry-run) $(ARGS) \
	  -krew "$(CURDIR)/bin/krew" -helm "$$($(GO) run ./hack/tools -print helm | cut -d' ' -f2-)" -kustomize "$$($(GO) run ./hack/tools -print kustomize | cut -d' ' -f2-)"

.PHONY: help
help: ## Show this.
	@awk 'BEGIN {FS = ":.*##"} /^[a-zA-Z_0-9-]+:.*?##/ {printf "  %-15s %s\n", $$1, $$2} /^##@/ {printf "\n%s\n", substr($$0, 5)}' $(MAKEFILE_LIST)
