# All targets do their own set-up. `make help` lists them.
GO      ?= go
LINT    := $(GO) tool -modfile=tools/lint/go.mod golangci-lint
LDFLAGS := -s -w

.PHONY: help
help: ## list the targets
	@grep -hE '^[a-z-]+:.*##' $(MAKEFILE_LIST) | sed 's/:.*## /\t/' | expand -t 18

.PHONY: build
build: ## build bin/kubectl-vlan50
	CGO_ENABLED=0 $(GO) build -trimpath -ldflags '$(LDFLAGS)' -o bin/ ./cmd/kubectl-vlan50

.PHONY: test
test: unit lint integration ## unit tests, lint and integration tests

.PHONY: unit
unit: ## unit tests alone, with the race detector
	$(GO) test -race ./cmd/... ./pkg/...

.PHONY: integration
integration: build ## the built binary against a real API server
	$(GO) test -tags integration -count=1 -timeout 30m ./test/apiserver/... ./test/buildcache/... ./test/scriptednode/... ./test/integration/...

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

.PHONY: demo
demo: build ## three retests to watch: a pass, a false failure told apart, a real failure
	$(GO) run ./test/demo

.PHONY: clean
clean: ## remove what was built here (caches stay)
	rm -rf bin dist
