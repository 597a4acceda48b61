#!/bin/sh
# Starts PostgreSQL the way its published image does: makes the cluster at PGDATA when there is none, with the user, password and
# database of the POSTGRES_ variables and the scripts of /docker-entrypoint-initdb.d, then becomes the server.
set -eu

fail() {
    echo "docker-entrypoint.sh: $1" >&2
    exit 1
}

# Exports variable $1: its own value, or the content of the file that $1_FILE names, or else $2.
resolve() {
    eval "value=\${$1:-} path=\${$1_FILE:-}"
    if [ -n "$path" ]; then
        [ -z "$value" ] || fail "both $1 and $1_FILE are set: set one of them"
        value=$(cat "$path") || fail "failed to read $path, which $1_FILE names"
    fi
    unset "$1_FILE"
    export "$1=${value:-$2}"
}

# psql on the local socket; the database is $POSTGRES_DB unless $database says otherwise.
run_sql() {
    PGHOST='' PGHOSTADDR='' psql -v ON_ERROR_STOP=1 --no-psqlrc --no-password --username "$POSTGRES_USER" \
        --dbname "${database:-$POSTGRES_DB}" "$@"
}

run_scripts() {
    for script in /docker-entrypoint-initdb.d/*; do
        case "$script" in
            *.sh)
                echo "docker-entrypoint.sh: running $script"
                # shellcheck disable=SC1090 # which script that is, its author knows
                if [ -x "$script" ]; then "$script"; else . "$script"; fi
                ;;
            *.sql) echo "docker-entrypoint.sh: running $script" && run_sql -f "$script" ;;
            *.sql.gz) echo "docker-entrypoint.sh: running $script" && gzip -dc "$script" | run_sql ;;
            */\*) ;;
            *) echo "docker-entrypoint.sh: leaving out $script" ;;
        esac
    done
}

# Makes the cluster. The arguments are those of the server.
initialise() {
    if [ -z "$POSTGRES_PASSWORD" ] && [ "${POSTGRES_HOST_AUTH_METHOD:-}" != trust ]; then
        fail "there is no database yet and no password for its superuser: set POSTGRES_PASSWORD or POSTGRES_PASSWORD_FILE"
    fi
    # Before anything is made, so that a folder that cannot be read leaves no half-made database.
    ls /docker-entrypoint-initdb.d >/dev/null

    # The password goes through a pipe: no file of it stays, and none is needed on a read-only root.
    eval "initdb --username=\"\$POSTGRES_USER\" --pwfile=/dev/fd/3 $POSTGRES_INITDB_ARGS" 3<<END
$POSTGRES_PASSWORD
END
    method="${POSTGRES_HOST_AUTH_METHOD:-$(postgres -C password_encryption "$@")}"
    printf '\nhost all all all %s\n' "$method" >>"$PGDATA/pg_hba.conf"

    export PGPASSWORD="${PGPASSWORD:-$POSTGRES_PASSWORD}"
    # Nobody but this script reaches the server until everything is made.
    # On the port where psql looks, whatever the server's own will be.
    postgres "$@" -c listen_addresses= -p "${PGPORT:-5432}" &
    server=$!
    trap 'kill -INT "$server" 2>/dev/null; wait "$server"; exit 1' TERM INT
    until PGHOST='' pg_isready --quiet --username "$POSTGRES_USER" --dbname postgres; do
        kill -0 "$server" 2>/dev/null || fail "the server ended while the database was being made"
        sleep 0.1
    done
    database=postgres
    # Through standard input: psql replaces variables there, and not in what --command gives it.
    exists=$(echo "SELECT 1 FROM pg_database WHERE datname = :'name'" | run_sql --set name="$POSTGRES_DB" --tuples-only)
    [ -n "$exists" ] || echo 'CREATE DATABASE :"name"' | run_sql --set name="$POSTGRES_DB"
    database=
    run_scripts
    kill -INT "$server"
    wait "$server" || fail "the server did not end well after the database was made"
    trap - TERM INT
    unset PGPASSWORD
    echo "docker-entrypoint.sh: the database is made"
}

case "${1:-}" in
    -*) set -- postgres "$@" ;;
esac

only_asks() {
    for argument in "$@"; do
        case "$argument" in
            '-?' | --help | --describe-config | -V | --version) return 0 ;;
        esac
    done
    return 1
}

if [ "${1:-}" = postgres ] && ! only_asks "$@"; then
    mkdir -p "$PGDATA"
    # On a volume that belongs to somebody else this fails; the server then says so better than this script could.
    chmod 0700 "$PGDATA" || true
    mkdir -p /var/run/postgresql || true
    chmod 03775 /var/run/postgresql || true
    if [ "$(id -u)" = 0 ]; then
        find "$PGDATA" /var/run/postgresql ! -user postgres -exec chown postgres '{}' +
        exec setpriv --reuid postgres --regid postgres --clear-groups "$0" "$@"
    fi
    resolve POSTGRES_PASSWORD ''
    resolve POSTGRES_USER postgres
    resolve POSTGRES_DB "$POSTGRES_USER"
    resolve POSTGRES_INITDB_ARGS ''
    if [ -s "$PGDATA/PG_VERSION" ]; then
        echo "docker-entrypoint.sh: there is a database in $PGDATA"
    else
        server_name=$1
        shift
        initialise "$@"
        set -- "$server_name" "$@"
    fi
fi
exec "$@"
