#!/bin/sh
# Makes the image of one program for each processor that it is given for, as one archive in the OCI layout, without a daemon: image.sh PROGRAM ARCHIVE ARCHITECTURE=BINARY…
#
# It holds one static program, this machine's root certificates, and for the sweeper the time zones of its schedules. ARCHITECTURE is amd64 or arm64. Twice the same for one
# commit, certificates and time zones. `podman load --input ARCHIVE` takes what fits its machine, and `skopeo copy --all oci-archive:ARCHIVE docker://…` all of it.
set -eu
cd "$(dirname "$0")/../.."
. packaging/release/environment.sh
program=$1 archive=$2
shift 2
[ $# != 0 ] || { echo "image.sh: for which processor? ARCHITECTURE=BINARY" >&2 && exit 2; }
certificates=/etc/ssl/certs/ca-certificates.crt
[ -e $certificates ] || { echo "$certificates is missing: install ca-certificates" >&2 && exit 1; }

work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
root=$work/root
mkdir -p "$root/etc/ssl/certs"
cp $certificates "$root$certificates"
case $program in
node-agent)
    # It measures the host, and begins with rights that the process of root alone gets: whoever runs it names them (packaging/container/Containerfile).
    settings='"User":"0","Env":["NODE_AGENT_STATE_DIR=/var/lib/node-agent"],"Volumes":{"/var/lib/node-agent":{}},"Entrypoint":["/node-agent"],"Cmd":["run"]'
    state='' owner=0
    ;;
sweeper)
    [ -e /usr/share/zoneinfo/Europe/Berlin ] || { echo "/usr/share/zoneinfo is missing: install tzdata" >&2 && exit 1; }
    mkdir -p "$root/usr/share"
    cp -R /usr/share/zoneinfo "$root/usr/share/"
    rm -rf "$root/usr/share/zoneinfo/right" "$root/usr/share/zoneinfo/posix"
    settings='"User":"65532:65532","Env":["SWEEPER_DATA_DIR=/var/lib/cloud-sweeper"],"Volumes":{"/var/lib/cloud-sweeper":{}},"ExposedPorts":{"8090/tcp":{}},"Entrypoint":["/sweeper"],"Cmd":["serve"]'
    state=var/lib/cloud-sweeper owner=65532
    ;;
*) echo "image.sh: there is no image of $program" >&2 && exit 2 ;;
esac

# pack ARCHIVE FOLDER MEMBER…: the same bytes for the same files.
pack() {
    to=$1 from=$2
    shift 2
    tar --create --file "$to" --directory "$from" --format=gnu --sort=name --mtime="@$SOURCE_DATE_EPOCH" --numeric-owner --owner=0 --group=0 --mode=u=rwX,go=rX "$@"
}
digest() { sha256sum <"$1" | cut -d' ' -f1; }

layout=$work/layout
blobs=$layout/blobs/sha256
mkdir -p "$blobs"
# blob FILE: takes it into the layout, and sets `digest_of` and `size_of`.
blob() {
    digest_of=$(digest "$1")
    size_of=$(stat --format=%s "$1")
    cp "$1" "$blobs/$digest_of"
}
created=$(date --utc --date "@$SOURCE_DATE_EPOCH" +%Y-%m-%dT%H:%M:%SZ)
labels=$(printf '"org.opencontainers.image.title":"%s","org.opencontainers.image.version":"%s","org.opencontainers.image.revision":"%s","org.opencontainers.image.licenses":"Apache-2.0"' \
    "$program" "$version" "$(git rev-parse HEAD)")

manifests=
for one in "$@"; do
    architecture=${one%%=*}
    install -m 755 "${one#*=}" "$root/$program"
    pack "$work/layer.tar" "$root" .
    if [ -n "$state" ]; then
        # The one folder that a user without rights writes to, also where a volume takes its owner from the image.
        mkdir -p "$work/state/$state"
        tar --append --file "$work/layer.tar" --directory "$work/state" --format=gnu --mtime="@$SOURCE_DATE_EPOCH" --numeric-owner --owner="$owner" --group="$owner" --mode=700 --no-recursion "$state"
    fi
    layer=$(digest "$work/layer.tar")
    gzip -9n <"$work/layer.tar" >"$work/layer.tar.gz"
    blob "$work/layer.tar.gz"
    layer_descriptor=$(printf '{"mediaType":"application/vnd.oci.image.layer.v1.tar+gzip","digest":"sha256:%s","size":%s}' "$digest_of" "$size_of")
    printf '{"created":"%s","architecture":"%s","os":"linux","config":{%s,"Labels":{%s}},"rootfs":{"type":"layers","diff_ids":["sha256:%s"]},"history":[{"created":"%s","created_by":"packaging/release/image.sh"}]}' \
        "$created" "$architecture" "$settings" "$labels" "$layer" "$created" >"$work/config.json"
    blob "$work/config.json"
    printf '{"schemaVersion":2,"mediaType":"application/vnd.oci.image.manifest.v1+json","config":{"mediaType":"application/vnd.oci.image.config.v1+json","digest":"sha256:%s","size":%s},"layers":[%s],"annotations":{"org.opencontainers.image.created":"%s",%s}}' \
        "$digest_of" "$size_of" "$layer_descriptor" "$created" "$labels" >"$work/manifest.json"
    blob "$work/manifest.json"
    manifests=$manifests${manifests:+,}$(printf '{"mediaType":"application/vnd.oci.image.manifest.v1+json","digest":"sha256:%s","size":%s,"platform":{"architecture":"%s","os":"linux"}}' "$digest_of" "$size_of" "$architecture")
    echo "$program for $architecture: sha256:$digest_of"
done
# The image is the list of what there is for each processor: who pulls it by its digest gets what fits.
printf '{"schemaVersion":2,"mediaType":"application/vnd.oci.image.index.v1+json","manifests":[%s]}' "$manifests" >"$work/image.json"
blob "$work/image.json"
printf '{"schemaVersion":2,"mediaType":"application/vnd.oci.image.index.v1+json","manifests":[{"mediaType":"application/vnd.oci.image.index.v1+json","digest":"sha256:%s","size":%s,"annotations":{"org.opencontainers.image.ref.name":"%s:%s"}}]}' \
    "$digest_of" "$size_of" "$program" "$version" >"$layout/index.json"
printf '{"imageLayoutVersion":"1.0.0"}' >"$layout/oci-layout"
pack "$archive" "$layout" oci-layout index.json blobs
echo "$program: sha256:$digest_of"
