#!/bin/sh
# Starts QuestDB the way its published image does: as user questdb when started as root, with arguments for the Java machine when the
# first one begins with a dash, with JVM_PREPEND before them.
set -eu

export QDB_PACKAGE="${QDB_PACKAGE:-docker}"
root="${QUESTDB_DATA_DIR:-/var/lib/questdb}"
user="${QUESTDB_UID:-10001}"
group="${QUESTDB_GID:-10001}"
# The runtime here does not have the server linked in, so it is told where the server and its native libraries are.
java="/app/bin/java ${JVM_PREPEND:-} -p /app/lib/questdb.jar -Dquestdb.libs.dir=/app/lib/native"

if [ $# -eq 0 ]; then
    # shellcheck disable=SC2086 # the options in it are words
    set -- $java -XX:+UseParallelGC "-XX:ErrorFile=$root/db/hs_err_pid+%p.log" "-Dout=$root/conf/log.conf" \
        -m io.questdb/io.questdb.ServerMain -d "$root" -f
else
    case "$1" in
        # shellcheck disable=SC2086 # the options in it are words
        -*) set -- $java "$@" ;;
    esac
fi

if [ "$(id -u)" = 0 ] && [ "${RUN_AS_ROOT:-false}" = false ]; then
    if [ "${DO_CHOWN:-true}" = true ]; then
        chown "$user:$group" "$root"
        for folder in conf public db .checkpoint snapshot; do
            [ ! -e "$root/$folder" ] || chown -R "$user:$group" "$root/$folder"
        done
    fi
    exec setpriv --reuid "$user" --regid "$group" --clear-groups "$@"
fi
exec "$@"
