#!/bin/sh
# Puts a file of the write-ahead log (WAL) into the archive of spec.walArchive, or gets one from an archive. Written by Freehold.
set -eu

# They may be new since the server began.
secret=${WAL_ARCHIVE_CREDENTIALS:-/run/freehold/wal-archive}
for name in AWS_ACCESS_KEY_ID AWS_SECRET_ACCESS_KEY AWS_SESSION_TOKEN; do
    [ ! -e "$secret/$name" ] || export "$name=$(cat "$secret/$name")"
done
[ -z "${WAL_ARCHIVE_ENDPOINT:-}" ] || set -- "$@" --endpoint-url "$WAL_ARCHIVE_ENDPOINT"

# S3 that does not answer must not keep a server from stopping, which waits for its archive.
AWS_MAX_ATTEMPTS=2
export AWS_MAX_ATTEMPTS

action=$1
file=$2
shift 2
case $action in
archive)
    exec timeout 120 barman-cloud-wal-archive --gzip "$@" "$WAL_ARCHIVE" "$WAL_ARCHIVE_FOLDER" "$file"
    ;;
restore)
    target=$1
    shift
    timeout 120 barman-cloud-wal-restore "$@" "$WAL_RECOVERY_ARCHIVE" "$WAL_RECOVERY_FOLDER" "$file" "$target" || {
        # 1: the archive does not have the file. PostgreSQL takes that for the end of the log, and a code above 125 for an error that ends the
        # recovery (its documentation, "Recovering Using a Continuous Archive Backup").
        [ $? -ne 1 ] || exit 1
        exit 255
    }
    ;;
esac
