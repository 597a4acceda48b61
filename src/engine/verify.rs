//! The check of restored data, as data: the statements for each engine, and what it answers. Pure.
//!
//! PostgreSQL reads every row of every table, and what is stored outside of rows: a page that fails its
//! checksum is an error of that statement. Its extension amcheck compares indexes with their tables, which
//! also finds an index whose order is that of another C library. QuestDB counts rows by its list of
//! transactions alone, so every column is aggregated, but for those of types that are not known here.

/// What a check found.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Verified {
    /// How many tables were read.
    pub tables: u64,
    /// How many rows these have.
    pub rows: u64,
    /// How many indexes were compared with their tables; none where the engine cannot do that.
    pub indexes: Option<u64>,
    /// What is wrong.
    pub findings: Vec<Finding>,
}

impl Verified {
    /// One more table was read, with so many rows.
    pub fn add(&mut self, rows: u64) {
        self.tables = self.tables.saturating_add(1);
        self.rows = self.rows.saturating_add(rows);
    }

    /// So many more indexes were compared with their tables.
    pub fn add_indexes(&mut self, indexes: usize) {
        let indexes = u64::try_from(indexes).unwrap_or(u64::MAX);
        self.indexes = Some(self.indexes.unwrap_or_default().saturating_add(indexes));
    }
}

/// Something that is wrong with the data.
#[derive(Clone, Debug, PartialEq, Eq)]
#[cfg_attr(test, derive(strum::VariantNames))]
pub enum Finding {
    /// The engine does not read a table.
    Unreadable {
        /// The table, with its schema and database where the engine has those.
        table: String,
        /// The engine's message.
        why: String,
    },
    /// The structure of a table is not what it must be, though its rows can be read.
    Corrupt {
        /// The table, with its schema and database.
        table: String,
        /// amcheck's message.
        why: String,
    },
    /// An index is not what its table says.
    Index {
        /// The index, with its schema and database.
        index: String,
        /// amcheck's message.
        why: String,
    },
    /// QuestDB does not apply what was written to this table.
    Suspended(String),
    /// There is no table, and no query that says what there should be.
    NoTables,
    /// So many checksums of pages did not match.
    Checksums(u64),
    /// The query of the BackupSchedule gave this instead of one row that begins with true or 1.
    Answer(String),
    /// The engine refused the query of the BackupSchedule; its message.
    QueryRefused(String),
}

/// One row of an answer, as text.
pub type Row = Vec<Option<String>>;

/// The statements for QuestDB.
pub mod questdb {
    use super::{literal, quoted};

    /// Every table.
    pub const TABLES: &str = "SELECT table_name FROM tables()";

    /// Those to which nothing is applied any more. Those without a write-ahead log are not in the list.
    pub const SUSPENDED: &str = "SELECT name FROM wal_tables() WHERE suspended";

    /// One row for each table to which transactions are still applied that it has acknowledged.
    pub const APPLYING: &str =
        "SELECT name FROM wal_tables() WHERE NOT suspended AND writerTxn < sequencerTxn";

    /// The columns of a table with their types.
    pub fn columns(table: &str) -> String {
        format!("SELECT \"column\", type FROM table_columns({})", literal(table))
    }

    /// Reads the columns of a table, and begins with the number of its rows.
    pub fn read(table: &str, columns: &[(String, String)]) -> String {
        let read = columns.iter().filter_map(|(name, kind)| column(&quoted(name), kind));
        let all: Vec<String> = std::iter::once("count()".to_owned()).chain(read).collect();
        format!("SELECT {} FROM {}", all.join(", "), quoted(table))
    }

    /// What reads a column of this type; as tried with QuestDB 8.2.0 and 9.3.4.
    fn column(name: &str, kind: &str) -> Option<String> {
        match kind.split('(').next().unwrap_or_default() {
            "BOOLEAN" => Some(format!("sum(cast({name} AS INT))")),
            "STRING" | "VARCHAR" | "BINARY" => Some(format!("sum(length({name}))")),
            "DOUBLE[]" => Some(format!("sum(array_count({name}))")),
            "BYTE" | "SHORT" | "CHAR" | "INT" | "LONG" | "FLOAT" | "DOUBLE" | "SYMBOL" | "DATE"
            | "TIMESTAMP" | "TIMESTAMP_NS" | "UUID" | "IPv4" | "LONG256" | "GEOHASH" | "DECIMAL" => {
                Some(format!("count({name})"))
            }
            _ => None,
        }
    }
}

/// The statements for PostgreSQL.
pub mod postgresql {
    use super::{literal, quoted};

    /// Every database that takes connections, but the templates.
    pub const DATABASES: &str =
        "SELECT datname FROM pg_database WHERE datallowconn AND NOT datistemplate ORDER BY datname";

    /// The schema of what is stored outside of rows.
    pub const TOAST: &str = "pg_toast";

    /// Every table and every filled materialized view of users in one database, with its schema, and what is
    /// stored outside of their rows. The rows of a partitioned table are in its partitions.
    pub const TABLES: &str = "SELECT n.nspname, c.relname FROM pg_class c \
        JOIN pg_namespace n ON n.oid = c.relnamespace \
        WHERE c.relkind IN ('r', 'm', 't') AND c.relispopulated AND c.relpersistence <> 't' \
        AND (n.nspname NOT IN ('pg_catalog', 'information_schema') OR c.relname = 'pg_largeobject') \
        ORDER BY 1, 2";

    /// Whether the rows of a table are those of a user.
    pub fn is_of_user(schema: &str) -> bool {
        schema != TOAST && schema != "pg_catalog"
    }

    /// The tables themselves are read, and not an index of them, for as long as that takes.
    pub const READ_TABLES: &str = "SET enable_indexscan = off; SET enable_indexonlyscan = off; \
        SET enable_bitmapscan = off; SET statement_timeout = 0; SET default_transaction_read_only = off";

    /// How many checksums of pages did not match in all databases; null if pages have none.
    pub const CHECKSUMS: &str = "SELECT coalesce(sum(checksum_failures), 0) FROM pg_stat_database";

    /// Whether amcheck can be created: its files are in the image, and the administrator is a superuser.
    pub const HAS_AMCHECK: &str = "SELECT rolsuper AND EXISTS \
        (SELECT FROM pg_available_extensions WHERE name = 'amcheck') \
        FROM pg_roles WHERE rolname = current_user";

    /// Creates amcheck in a schema of its own, or brings it to the version of the engine where it is already.
    /// No event trigger of a user runs. `verify_heapam` is there from PostgreSQL 14 on.
    pub const CREATE_AMCHECK: &str = "SET session_replication_role = replica; \
        DROP SCHEMA IF EXISTS freehold_verification CASCADE; CREATE SCHEMA freehold_verification; \
        CREATE EXTENSION IF NOT EXISTS amcheck SCHEMA freehold_verification; \
        ALTER EXTENSION amcheck UPDATE";

    /// The schema that amcheck is in.
    pub const SCHEMA_OF_AMCHECK: &str = "SELECT n.nspname FROM pg_extension e \
        JOIN pg_namespace n ON n.oid = e.extnamespace WHERE e.extname = 'amcheck'";

    /// Every table that amcheck can check, with its schema: those of the system, too.
    pub const HEAPS: &str = "SELECT n.nspname, c.relname FROM pg_class c \
        JOIN pg_namespace n ON n.oid = c.relnamespace JOIN pg_am a ON a.oid = c.relam \
        WHERE a.amname = 'heap' AND c.relkind IN ('r', 'm', 't') AND c.relpersistence <> 't' ORDER BY 1, 2";

    /// Every index that amcheck can compare, with its schema (PostgreSQL documentation, "F.1. amcheck").
    pub const INDEXES: &str = "SELECT n.nspname, c.relname FROM pg_index i \
        JOIN pg_class c ON c.oid = i.indexrelid JOIN pg_namespace n ON n.oid = c.relnamespace \
        JOIN pg_am a ON a.oid = c.relam WHERE a.amname = 'btree' AND c.relkind = 'i' \
        AND c.relpersistence <> 't' AND i.indisready AND i.indisvalid ORDER BY 1, 2";

    /// Compares an index with its table: its order, and that every row is in it.
    pub fn check_index(amcheck: &str, schema: &str, index: &str) -> String {
        let index = literal(&qualified(schema, index));
        format!("SELECT {}.bt_index_check({index}::regclass, true)", quoted(amcheck))
    }

    /// What is wrong with the structure of a table: its first fault, or no row.
    pub fn check_heap(amcheck: &str, schema: &str, table: &str) -> String {
        let table = literal(&qualified(schema, table));
        format!(
            "SELECT 'block ' || blkno || ': ' || msg FROM {}.verify_heapam({table}::regclass, \
             on_error_stop => true) LIMIT 1",
            quoted(amcheck)
        )
    }

    /// A table or an index with its schema, as it stands in a statement.
    fn qualified(schema: &str, name: &str) -> String {
        format!("{}.{}", quoted(schema), quoted(name))
    }

    /// The number of rows of a table.
    pub fn count(schema: &str, table: &str) -> String {
        format!("SELECT count(*) FROM {}", qualified(schema, table))
    }
}

/// An identifier as it stands in a statement.
pub fn quoted(identifier: &str) -> String {
    format!("\"{}\"", identifier.replace('"', "\"\""))
}

/// A text as it stands in a statement.
pub fn literal(text: &str) -> String {
    format!("'{}'", text.replace('\'', "''"))
}

/// The first column of the first row.
pub fn only(rows: &[Row]) -> Option<String> {
    rows.first()?.first()?.clone()
}

/// The first column of every row.
pub fn names(rows: &[Row]) -> Option<Vec<String>> {
    rows.iter().map(|row| row.first().cloned().flatten()).collect()
}

/// The first two columns of every row.
pub fn pairs(rows: &[Row]) -> Option<Vec<(String, String)>> {
    let pair = |row: &Row| Some((row.first().cloned()??, row.get(1).cloned()??));
    rows.iter().map(pair).collect()
}

/// The one number of an answer.
pub fn number(rows: &[Row]) -> Option<u64> {
    let [row] = rows else { return None };
    row.first()?.as_deref()?.parse().ok()
}

/// Whether an answer is one row whose first column is true or 1.
pub fn is_true(rows: &[Row]) -> bool {
    let [row] = rows else { return false };
    row.first().and_then(Option::as_deref).is_some_and(|text| matches!(text, "t" | "true" | "1"))
}

/// How an answer is shown to people that should have been true: the first column, or how many rows there are.
pub fn shown(rows: &[Row]) -> String {
    match rows {
        [row] => row.first().cloned().flatten().unwrap_or_else(|| "null".to_owned()),
        _ => format!("{} rows", rows.len()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn rows(rows: &[&[Option<&str>]]) -> Vec<Row> {
        rows.iter().map(|row| row.iter().map(|text| text.map(str::to_owned)).collect()).collect()
    }

    #[test]
    fn an_identifier_stays_one_whatever_is_in_it() {
        assert_eq!(questdb::read("a\"b", &[]), "SELECT count() FROM \"a\"\"b\"");
        assert_eq!(questdb::columns("a'b"), "SELECT \"column\", type FROM table_columns('a''b')");
        assert_eq!(
            postgresql::count("public", "a\"; DROP TABLE b; --"),
            "SELECT count(*) FROM \"public\".\"a\"\"; DROP TABLE b; --\""
        );
    }

    #[test]
    fn each_column_of_questdb_is_read_as_its_type_allows() {
        let columns = [
            ("ts", "TIMESTAMP"),
            ("is_buy", "BOOLEAN"),
            ("note", "VARCHAR"),
            ("cell", "GEOHASH(4c)"),
            ("book", "DOUBLE[]"),
            ("price", "DECIMAL(10,2)"),
            ("later", "TYPE_OF_A_LATER_RELEASE"),
        ];
        let columns = columns.map(|(name, kind)| (name.to_owned(), kind.to_owned()));
        assert_eq!(
            questdb::read("trades", &columns),
            "SELECT count(), count(\"ts\"), sum(cast(\"is_buy\" AS INT)), sum(length(\"note\")), \
             count(\"cell\"), sum(array_count(\"book\")), count(\"price\") FROM \"trades\""
        );
    }

    #[test]
    fn one_row_that_begins_with_true_or_1_is_true_and_nothing_else() {
        for text in ["t", "true", "1"] {
            assert!(is_true(&rows(&[&[Some(text), Some("f")]])), "{text}");
        }
        let others: [(&[&[Option<&str>]], &str); 6] = [
            (&[], "0 rows"),
            (&[&[Some("f")]], "f"),
            (&[&[Some("2")]], "2"),
            (&[&[None]], "null"),
            (&[&[]], "null"),
            (&[&[Some("t")], &[Some("t")]], "2 rows"),
        ];
        for (answer, says) in others {
            let answer = rows(answer);
            assert!(!is_true(&answer), "{answer:?}");
            assert_eq!(shown(&answer), says);
        }
    }

    #[test]
    fn half_an_answer_is_none() {
        assert_eq!(number(&rows(&[&[Some("17")]])), Some(17));
        for answer in
            [rows(&[]), rows(&[&[None]]), rows(&[&[Some("many")]]), rows(&[&[Some("1")], &[Some("2")]])]
        {
            assert_eq!(number(&answer), None, "{answer:?}");
        }
        assert_eq!(names(&rows(&[&[Some("a")], &[Some("b")]])), Some(vec!["a".to_owned(), "b".to_owned()]));
        assert_eq!(names(&rows(&[&[Some("a")], &[None]])), None);
        assert_eq!(pairs(&rows(&[&[Some("a"), Some("b")]])), Some(vec![("a".to_owned(), "b".to_owned())]));
        assert_eq!(pairs(&rows(&[&[Some("a")]])), None);
    }
}
