# The operator's image for those who build with Docker:
#
#   docker buildx build --platform linux/amd64,linux/arm64 --tag REGISTRY/freehold:0.1.0 --push .
#
# The published image is made by `cargo box image`, which also adds licenses and a bill of materials (docs/releasing.md). Both run
# alike: same user, same entrypoint, glibc of Debian 12, no shell.
#
# Each base is pinned by the digest of its list of platforms. To renew one: docker buildx imagetools inspect NAME:TAG

FROM --platform=$BUILDPLATFORM docker.io/library/rust:1.95.0-bookworm@sha256:6258907abe69656e41cd992e0b705cdcfabcbbe3db374f92ed2d47121282d4a1 AS build
ARG BUILDARCH
ARG TARGETARCH
# The toolchain of this base; rust-toolchain.toml would have its lints installed, too.
ENV RUSTUP_TOOLCHAIN=1.95.0 \
    CARGO_TARGET_X86_64_UNKNOWN_LINUX_GNU_LINKER=x86_64-linux-gnu-gcc \
    CC_x86_64_unknown_linux_gnu=x86_64-linux-gnu-gcc \
    CARGO_TARGET_AARCH64_UNKNOWN_LINUX_GNU_LINKER=aarch64-linux-gnu-gcc \
    CC_aarch64_unknown_linux_gnu=aarch64-linux-gnu-gcc
# For the other processor it is compiled on this one: emulated, the AWS SDK would take hours. No version is pinned, since Debian removes
# a package's version when the next one comes.
# hadolint ignore=DL3008
RUN if [ "$TARGETARCH" != "$BUILDARCH" ]; then \
      apt-get update && apt-get install --yes --no-install-recommends "crossbuild-essential-$TARGETARCH" && rm -rf /var/lib/apt/lists/*; \
    fi
WORKDIR /freehold
COPY . .
# aws-sdk-ec2 needs 8 GB of memory, as its compilation does everywhere.
RUN --mount=type=cache,target=/usr/local/cargo/registry,sharing=locked \
    --mount=type=cache,target=/freehold/target,sharing=locked \
    case "$TARGETARCH" in \
      amd64) target=x86_64-unknown-linux-gnu ;; \
      arm64) target=aarch64-unknown-linux-gnu ;; \
      *) echo "the operator is not built for $TARGETARCH" >&2; exit 1 ;; \
    esac && \
    rustup target add "$target" && \
    cargo build --release --locked --target "$target" --package freehold --bin freehold && \
    cp "target/$target/release/freehold" /usr/local/bin/freehold

FROM gcr.io/distroless/cc-debian12:nonroot@sha256:9dac0a79194e45a7da0158a9c6da57b217585af0786db3845d1f0ec1a0dd182f
ARG REVISION=""
ARG SOURCE=""
LABEL org.opencontainers.image.title="Freehold" \
      org.opencontainers.image.description="A single-tenant database operator for Kubernetes on AWS" \
      org.opencontainers.image.licenses="Apache-2.0" \
      org.opencontainers.image.version="0.1.0" \
      org.opencontainers.image.revision="$REVISION" \
      org.opencontainers.image.source="$SOURCE"
COPY --from=build /usr/local/bin/freehold /freehold
COPY LICENSE /usr/share/doc/freehold/LICENSE
ENV PATH=/ \
    SSL_CERT_FILE=/etc/ssl/certs/ca-certificates.crt
WORKDIR /
USER 65532:65532
ENTRYPOINT ["/freehold"]
