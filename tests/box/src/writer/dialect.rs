//! What differs between the engines that a writer writes to: the statements.

use std::fmt;

use clap::ValueEnum;

/// An engine that speaks PostgreSQL's wire protocol.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum Dialect {
    /// QuestDB. With `cairo.commit.mode=sync` it answers an insert once the write-ahead log is on the disk;
    /// by default before.
    Questdb,

    /// PostgreSQL: it answers an insert once the write-ahead log is on the disk.
    Postgresql,
}

impl Dialect {
    /// The engine's name, as `spec.engine.type` has it.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Questdb => "questdb",
            Self::Postgresql => "postgresql",
        }
    }

    /// Makes the table. It has no key: a row that was stored twice must be seen twice.
    pub(super) fn create(self, table: &str) -> String {
        match self {
            Self::Questdb => {
                format!(
                    "CREATE TABLE IF NOT EXISTS {table} (written TIMESTAMP, number LONG) \
                    TIMESTAMP(written) PARTITION BY HOUR WAL"
                )
            }
            Self::Postgresql => {
                format!(
                    "CREATE TABLE IF NOT EXISTS {table} (written TIMESTAMPTZ NOT NULL DEFAULT now(), \
                    number BIGINT NOT NULL)"
                )
            }
        }
    }

    /// Adds one row.
    pub(super) fn insert(self, table: &str, number: i64) -> String {
        match self {
            Self::Questdb => format!("INSERT INTO {table} (written, number) VALUES (now(), {number})"),
            Self::Postgresql => format!("INSERT INTO {table} (number) VALUES ({number})"),
        }
    }

    /// Reads all row numbers.
    pub(super) fn select(self, table: &str) -> String {
        match self {
            Self::Questdb | Self::Postgresql => format!("SELECT number FROM {table}"),
        }
    }

    /// Makes another table, and puts so many rows into it.
    pub(super) fn fill(self, table: &str, rows: u64) -> Vec<String> {
        match self {
            Self::Questdb => vec![
                format!(
                    "CREATE TABLE IF NOT EXISTS {table} (written TIMESTAMP, source SYMBOL, number LONG, \
                     reading DOUBLE) TIMESTAMP(written) PARTITION BY DAY WAL"
                ),
                // A second apart: some days have their own folders.
                format!(
                    "INSERT INTO {table} SELECT timestamp_sequence('2026-01-01', 1000000L), rnd_symbol('a', \
                     'b', 'c'), x, rnd_double() FROM long_sequence({rows})"
                ),
            ],
            Self::Postgresql => vec![
                format!(
                    "CREATE TABLE IF NOT EXISTS {table} (number BIGINT PRIMARY KEY, reading DOUBLE \
                    PRECISION NOT NULL)"
                ),
                format!(
                    "INSERT INTO {table} SELECT number, random() FROM generate_series(1, {rows}) AS \
                    number ON CONFLICT DO NOTHING"
                ),
            ],
        }
    }

    /// Counts the rows of a table.
    pub(super) fn count(self, table: &str) -> String {
        match self {
            Self::Questdb | Self::Postgresql => format!("SELECT count(*) FROM {table}"),
        }
    }

    /// Says how far the table's write-ahead log is applied: (applied, accepted, suspended, why). Until it is,
    /// a query does not see all rows that were acknowledged.
    pub(super) fn applied(self, table: &str) -> Option<String> {
        match self {
            Self::Questdb => Some(format!(
                "SELECT writerTxn, sequencerTxn, suspended, errorMessage FROM wal_tables() \
                    WHERE name = '{table}'"
            )),
            Self::Postgresql => None,
        }
    }
}

impl fmt::Display for Dialect {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}
