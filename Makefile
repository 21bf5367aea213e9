# All targets do their own set-up. `make help` lists them.
GO      ?= go
LINT    := $(GO) tool -modfile=tools/lint/go.mod golangci-lint

# One way to compile for everything but the race detector, so that nothing is
# compiled twice.
export CGO_ENABLED := 0

.PHONY: help
help: ## list the targets
	@grep -hE '^[a-z-]+:.*##' $(MAKEFILE_LIST) | sed 's/:.*## /\t/' | expand -t 18

.PHONY: build
build: ## build bin/kubectl-vlan50
	$(GO) build -o bin/ ./cmd/kubectl-vlan50

# govet is one of the linters.
.PHONY: test
test: unit lint integration ## unit tests, lint and integration tests

# The pure packages start no goroutine: a race detector would only slow them.
PURE := /(pkg/(address|argocd|evidence|multus|rollout|verdict)|test/cases)$$
UNIT := $(GO) list ./cmd/... ./pkg/... ./test/cases/... ./test/lab/...

.PHONY: unit
unit: ## unit tests alone, with the race detector where something runs at once
	$(GO) test -vet=off $$($(UNIT) | grep -E '$(PURE)')
	CGO_ENABLED=1 $(GO) test -race -vet=off $$($(UNIT) | grep -vE '$(PURE)')

.PHONY: integration
integration: build ## the built binary against a real API server
	$(GO) test -tags integration -vet=off -count=1 -timeout 30m -skip '^TestRollback' ./test/apiserver/... ./test/buildcache/... ./test/scriptednode/... ./test/demo/... ./test/integration/...

.PHONY: integration-rollback
integration-rollback: build ## rollback, which needs API servers of its own (some minutes)
	$(GO) test -tags integration -vet=off -count=1 -timeout 30m -run '^TestRollback' ./test/integration/...

.PHONY: lint
lint: ## lint, formatting and tidiness
	$(GO) mod tidy -diff
	$(LINT) run ./...

.PHONY: fmt
fmt: ## format all code
	$(LINT) fmt ./...

.PHONY: docs
docs: ## write the generated documents anew
	$(GO) test ./pkg/report -run TestCausesDocument -update-docs

# A release where HEAD has a tag, a snapshot elsewhere. GoReleaser wants to know
# where the repository came from, which a clone without a remote cannot say.
.PHONY: dist
dist: ## release archives, checksums, SBOMs and krew manifest, into dist/
	GIT_CONFIG_COUNT=1 GIT_CONFIG_KEY_0=remote.origin.url GIT_CONFIG_VALUE_0=https://github.com/vlan50/kubectl-vlan50 \
		$(GO) tool -modfile=tools/release/go.mod goreleaser release --clean --skip=publish --timeout 2h \
		$$(git describe --tags --exact-match >/dev/null 2>&1 || echo --snapshot)
	@wc -c dist/*.tar.gz dist/*.zip dist/*/kubectl-vlan50* | awk '$$2 != "total" { printf "%6.1f MB  %s\n", $$1 / 1e6, $$2 }'

.PHONY: test-krew
test-krew: ## build the release twice and install it with the real krew, offline
	$(GO) test -tags krew -vet=off -count=1 -timeout 2h -v ./test/krew/...

.PHONY: demo
demo: build ## three retests to watch: a pass, a false failure told apart, a real failure
	$(GO) run ./test/demo

LAB := $(GO) run ./test/lab/cmd/lab

.PHONY: lab-up
lab-up: build ## start the lab: a real node with real Multus (root on Linux)
	@$(LAB) up

.PHONY: lab-down
lab-down: ## end the lab and remove all that it left
	@$(LAB) down

.PHONY: lab-status
lab-status: ## show what runs in the lab
	@$(LAB) status

.PHONY: lab-shell
lab-shell: build ## a shell that reaches the lab
	@$(LAB) shell

.PHONY: lab-build
lab-build: ## build and fetch all that the lab is made of, and start nothing
	@$(LAB) build

.PHONY: lab-test
lab-test: build lab-build ## everything that only a real node can show (about an hour)
	$(GO) test -tags lab -vet=off -count=1 -timeout 2h -v ./test/lab

.PHONY: lab-test-short
lab-test-short: build lab-build ## the part of lab-test that CI runs
	$(GO) test -tags lab -vet=off -count=1 -timeout 30m -v -short ./test/lab

.PHONY: bench
bench: build ## what status costs on a large cluster, against kubectl get pods
	$(GO) run ./test/bench/status

.PHONY: clean
clean: ## remove what was built here (caches stay)
	rm -rf bin dist
