#!/bin/sh
# Starts PostgreSQL. Written by Freehold: initialises an empty volume once, and refuses one that holds anything else.
#
# PGDATA is <volume>/<major>/data. The image's own entrypoint is not used: an initialisation that is interrupted would leave it a
# directory that is taken for a finished one. Here it is made beside, and gets its name when it is whole.
set -eu

folder=${PGDATA%/*}
volume=${folder%/*}
major=${folder##*/}
unfinished=$PGDATA.unfinished
scripts=${SCRIPTS:-/etc/freehold}
# The probes answer in the place of a server that recovers alone, and so for no client.
recovering=${RECOVERING:-/tmp/freehold-recovering}

# Says why on the log and, by the file that Kubernetes reads, in the pod's status.
refuse() {
    message="PostgreSQL $major is not started: $1"
    echo "$message" >&2
    { echo "$message" >"${TERMINATION_LOG:-/dev/termination-log}"; } 2>/dev/null || :
    exit 1
}

# Refuses the directory $1 when it holds anything but the names that follow.
only() {
    directory=$1
    shift
    for entry in "$directory"/* "$directory"/.[!.]* "$directory"/..?*; do
        [ -e "$entry" ] || [ -L "$entry" ] || continue
        for known in "$@"; do
            [ "${entry##*/}" != "$known" ] || continue 2
        done
        refuse "$volume has no data of this version, and is not empty: $entry does not belong there; nothing was changed"
    done
}

initialise() {
    only "$PGDATA"
    only "$folder" "${PGDATA##*/}" "${unfinished##*/}"
    only "$volume" "$major" lost+found
    mkdir -p "$folder"
    rm -rf "$unfinished"
    [ ! -d "$PGDATA" ] || rmdir "$PGDATA"
    # C.UTF-8 sorts by code point: no index breaks when another image brings another C library. Files are flushed by initdb itself.
    initdb --pgdata="$unfinished" --username="$POSTGRES_USER" --pwfile="$POSTGRES_PASSWORD_FILE" \
        --auth=scram-sha-256 --data-checksums --encoding=UTF8 --locale=C.UTF-8
    echo "CREATE DATABASE \"$POSTGRES_DB\"" | postgres --single -D "$unfinished" -c exit_on_error=on postgres >/dev/null
    mv "$unfinished" "$PGDATA"
    # A name that a power cut takes back would take all later commits with it.
    sync "$folder" "$volume"
}

# Locks the users that a DatabaseUser made, in data of a backup: one that was dropped since is not let in again. The others are let in by their
# DatabaseUser, with its password; src/engine/users.rs reads the comment. One that a person had locked by then keeps its comment, and stays
# locked. Single-user mode takes each line as a statement.
lock_users() {
    [ -n "${POSTGRES_LOCK_USERS:-}" ] || return 0
    cat <<'STATEMENTS'
UPDATE pg_catalog.pg_shdescription SET description = pg_catalog.array_to_string((pg_catalog.string_to_array(description, ' '))[1:5], ' ') || CASE WHEN (pg_catalog.string_to_array(description, ' '))[6] LIKE 'taken-%' THEN ' taken-restored' ELSE ' pending-restored' END WHERE classoid = 'pg_catalog.pg_authid'::pg_catalog.regclass::pg_catalog.oid AND description LIKE 'freehold.dev/DatabaseUser %' AND objoid IN (SELECT oid FROM pg_catalog.pg_authid WHERE rolcanlogin)
UPDATE pg_catalog.pg_authid SET rolcanlogin = false WHERE rolcanlogin AND oid IN (SELECT objoid FROM pg_catalog.pg_shdescription WHERE classoid = 'pg_catalog.pg_authid'::pg_catalog.regclass::pg_catalog.oid AND description LIKE 'freehold.dev/DatabaseUser %')
STATEMENTS
}

# Says whether the image has the program $1: one that cannot be run must not be taken for one that found nothing.
has() {
    "$1" --version >/dev/null 2>&1
}

# What the file of control says of the last checkpoint.
checkpoint() {
    LC_ALL=C pg_controldata -D "$PGDATA" | sed -n "s/^Latest checkpoint$1: *//p"
}

# A position in the log as a number.
position() {
    echo $((0x${1%/*} * 4294967296 + 0x${1#*/}))
}

# Whether the recovery that was begun has not ended. It begins a new timeline, which the first checkpoint on it makes the one of the data. Before
# that PostgreSQL has removed recovery.signal already, and a server that is started without it would apply all of the log that it got.
begun=
first=
is_unfinished() {
    [ ! -e "$folder/recovery" ] || read -r begun first <"$folder/recovery" || :
    [ -n "$first" ] || return 1
    now=$(checkpoint "'s REDO WAL file")
    [ "${now%????????????????}" = "${first%????????????????}" ]
}

# Has the server recover the data of a backup to a later moment, by the log that was archived since: once for each restore. An interrupted
# recovery is begun again.
recover() {
    if ! is_unfinished; then
        [ "$begun" != "$WAL_RECOVERY" ] || return 0
        first=$(checkpoint "'s REDO WAL file")
    fi
    has barman-cloud-wal-restore || refuse "barman-cloud-wal-restore is not in the image, or does not run; nothing was changed"
    # Without it PostgreSQL would end at the data of the backup, and say nothing where all of the log is to be applied.
    sh "$scripts/wal.sh" restore "$first" "$recovering.wal" ||
        refuse "$WAL_RECOVERY_ARCHIVE/$WAL_RECOVERY_FOLDER does not give $first, the first file of the log since the backup; nothing was changed"
    rm -f "$recovering.wal"
    if [ "$begun" != "$WAL_RECOVERY" ]; then
        # PostgreSQL does not refuse it where the data is that of a server that was stopped.
        lsn=${WAL_RECOVERY_TARGET:-}
        [ "$lsn" = "${lsn#recovery_target_lsn=}" ] ||
            [ "$(position "${lsn#*=}")" -gt "$(position "$(checkpoint " location")")" ] ||
            refuse "the position ${lsn#*=} is not later than the backup; nothing was changed"
        echo "$WAL_RECOVERY $first" >"$folder/recovery.new"
        sync "$folder/recovery.new"
        mv -f "$folder/recovery.new" "$folder/recovery"
        sync "$folder"
    fi
    : >"$PGDATA/recovery.signal"
    sync "$PGDATA/recovery.signal" "$PGDATA"
    : >"$recovering"
}

# The data has credentials that are lost (spec.storage.newCredentials) or another database's: the mounted ones are set, by the server alone
# on its data, once for each database. Later a rotation changes them in the server, and a mounted file may be older than that.
renew() {
    set=
    [ ! -e "$folder/credentials" ] || read -r set <"$folder/credentials" || :
    [ "$set" != "$POSTGRES_NEW_CREDENTIALS" ] || return 0
    # A pod of an earlier version of Freehold has `true`, and mounts the password of its first start for as long as it is there.
    [ "$POSTGRES_NEW_CREDENTIALS" != true ] || [ -z "$set" ] || return 0
    # Freehold's passwords have no quotes. The settings of spec.config may have statements logged: not this one. A user of the data may have
    # created operators of any name, and a prepared transaction may hold a role, for ever.
    [ -z "${WAL_RECOVERY:-}" ] || recover
    if [ -e "$recovering" ]; then
        # A timeline of an attempt that was interrupted is not to be followed.
        set -- "$@" -c "restore_command=/bin/sh $scripts/wal.sh restore %f %p" -c recovery_target_timeline=current \
            -c recovery_target_action=promote -c hot_standby=off
        [ -z "${WAL_RECOVERY_TARGET:-}" ] || set -- "$@" -c "$WAL_RECOVERY_TARGET"
    fi
    { lock_users && echo "ALTER ROLE \"$POSTGRES_USER\" WITH LOGIN PASSWORD '$(cat "$POSTGRES_PASSWORD_FILE")'"; } |
        postgres --single -D "$PGDATA" "$@" -c exit_on_error=on -c config_file=/etc/freehold/postgresql.conf \
            -c default_transaction_read_only=off -c search_path=pg_catalog -c statement_timeout=0 -c lock_timeout=30s \
            -c log_statement=none -c log_min_duration_statement=-1 -c log_min_duration_sample=-1 -c log_transaction_sample_rate=0 \
            -c log_duration=off -c log_min_error_statement=panic postgres >/dev/null &
    # A recovery may take hours, in which no signal reaches it by itself.
    server=$!
    trap 'kill -KILL "$server" 2>/dev/null || :' TERM INT QUIT
    wait "$server"
    trap - TERM INT QUIT
    echo "$POSTGRES_NEW_CREDENTIALS" >"$folder/credentials"
    sync "$folder/credentials" "$folder"
    rm -f "$recovering"
}

if [ -e "$PGDATA/PG_VERSION" ]; then
    found=
    read -r found <"$PGDATA/PG_VERSION" || :
    [ "$found" = "$major" ] || refuse "$PGDATA holds data of PostgreSQL '$found'; nothing was changed"
else
    initialise
fi

# PostgreSQL refuses a data directory that its group may write to, as Kubernetes makes it when it corrects a volume's group.
chmod 0700 "$PGDATA"

# All settings are in the Database's spec. Those of ALTER SYSTEM would win over them, and may be what keeps the server from starting.
changed=$PGDATA/postgresql.auto.conf
if grep -q '^[[:space:]]*[^#[:space:]]' "$changed" 2>/dev/null; then
    mv -f "$changed" "$folder/postgresql.auto.conf.set-aside"
    echo "what ALTER SYSTEM has set is not used: it is in $folder/postgresql.auto.conf.set-aside; settings belong into spec.config" >&2
fi

# What is said here wins over every file.
[ "$major" -lt 17 ] || set -- -c allow_alter_system=off

# Without the program the server would keep its whole log.
if [ -n "${WAL_ARCHIVE:-}" ]; then
    if has barman-cloud-wal-archive; then
        set -- "$@" -c archive_mode=on -c "archive_command=/bin/sh $scripts/wal.sh archive %p" \
            -c "archive_timeout=$WAL_ARCHIVE_INTERVAL"
    else
        echo "barman-cloud-wal-archive is not in the image, or does not run: the write-ahead log is not archived" >&2
    fi
fi

rm -f "$recovering"
if is_unfinished && { [ "$begun" != "${WAL_RECOVERY:-}" ] || [ -z "${POSTGRES_NEW_CREDENTIALS:-}" ]; }; then
    refuse "$PGDATA is being recovered for $begun, and this pod does not go on with that; nothing was changed"
fi
[ -z "${POSTGRES_NEW_CREDENTIALS:-}" ] || renew "$@"

# The certificate and its key of spec.tls, which the kubelet updates.
access=pg_hba.conf
tls=/run/freehold/tls
[ -z "${POSTGRES_TLS:-}" ] || set -- "$@" -c ssl=on -c ssl_cert_file=$tls/tls.crt -c ssl_key_file=$tls/tls.key
[ "${POSTGRES_TLS:-}" != required ] || access=pg_hba.hostssl.conf

# The server's own cache is a quarter of the memory of the machine, which is the database's alone, or of the container's limit, as PostgreSQL's
# documentation advises ("Resource Consumption"), unless spec.config sets it. It is decided at each start, since the next machine may be smaller.
if ! grep -qi '^shared_buffers[[:space:]=]' "${SETTINGS:-/etc/freehold/postgresql.conf}" 2>/dev/null; then
    memory=
    { while read -r name kib _; do
        [ "$name" != MemTotal: ] || memory=$kib
    done <"${MEMINFO:-/proc/meminfo}"; } 2>/dev/null || :
    limit=
    { read -r limit <"${MEMORY_LIMIT:-/sys/fs/cgroup/memory.max}"; } 2>/dev/null || :
    case $limit in
    '' | *[!0-9]*) ;;
    *) [ "$((limit / 1024))" -ge "${memory:-0}" ] || memory=$((limit / 1024)) ;;
    esac
    [ -z "$memory" ] || set -- "$@" -c "shared_buffers=$((memory / 4))kB"
fi
exec postgres -D "$PGDATA" "$@" \
    -c config_file=/etc/freehold/postgresql.conf \
    -c hba_file=/etc/freehold/$access \
    -c listen_addresses='*' \
    -c port=5432 \
    -c unix_socket_directories=/var/run/postgresql \
    -c logging_collector=off \
    -c fsync=on \
    -c full_page_writes=on
