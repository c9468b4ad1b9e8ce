# SPDX-License-Identifier: Apache-2.0

# The hub, one static binary and the certificates of public authorities: for workload identity, and for --allow-missing-ca.
FROM --platform=$BUILDPLATFORM golang:1.26 AS build
ARG TARGETOS TARGETARCH
# Of a release, such as v0.1.0.
ARG VERSION
WORKDIR /src
COPY go.mod go.sum ./
RUN go mod download
COPY . .
RUN CGO_ENABLED=0 GOOS=$TARGETOS GOARCH=$TARGETARCH go build -trimpath -ldflags "-s -w -X github.com/chandler-hub/chandler/internal/version.release=$VERSION" -o /hub ./cmd/hub

FROM scratch
COPY --from=build /etc/ssl/certs/ca-certificates.crt /etc/ssl/certs/
COPY --from=build /hub /hub
# By number: a pod that must not run as root is refused where a name would have to be looked up.
USER 65532:65532
ENTRYPOINT ["/hub"]
