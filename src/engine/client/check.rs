//! Reads all of a restored engine over its connections.

use std::time::Duration;

use tokio::time::sleep;

use super::access::{Access, ClientError};
use super::session::{QUERY_LIMIT, Session};
use crate::engine::verify::{self, Finding, Row, Verified};

/// How long the engine may take to read one table, whose volume may be read from S3 block by block.
const TABLE_LIMIT: Duration = Duration::from_secs(4 * 3600);

/// How often it is asked whether all transactions are applied.
const APPLYING_PAUSE: Duration = Duration::from_secs(5);

impl Session {
    /// The number of rows of a table that is read. That the engine does not read it is a finding.
    async fn read_table(
        &self,
        table: String,
        statement: &str,
        found: &mut Verified,
    ) -> Result<u64, ClientError> {
        match self.read("the reading of a table", statement, TABLE_LIMIT, verify::number).await {
            Ok(rows) => Ok(rows),
            Err(ClientError::Refused { reason: why, .. }) => {
                found.findings.push(Finding::Unreadable { table, why });
                Ok(0)
            }
            Err(error) => Err(error),
        }
    }

    pub(super) async fn verify_questdb(&self, found: &mut Verified) -> Result<(), ClientError> {
        let what = "the list of tables to which transactions are applied";
        while !self.read(what, verify::questdb::APPLYING, QUERY_LIMIT, verify::names).await?.is_empty() {
            sleep(APPLYING_PAUSE).await;
        }
        let what = "the list of tables";
        for table in self.read(what, verify::questdb::TABLES, QUERY_LIMIT, verify::names).await? {
            let statement = verify::questdb::columns(&table);
            let what = "the list of columns";
            let columns = self.read(what, &statement, QUERY_LIMIT, verify::pairs).await?;
            let statement = verify::questdb::read(&table, &columns);
            let rows = self.read_table(table, &statement, found).await?;
            found.add(rows);
        }
        let what = "the list of suspended tables";
        let suspended = self.read(what, verify::questdb::SUSPENDED, QUERY_LIMIT, verify::names).await?;
        found.findings.extend(suspended.into_iter().map(Finding::Suspended));
        Ok(())
    }

    /// Reads the tables of the database that this is a connection to.
    async fn verify_postgresql(&self, database: &str, found: &mut Verified) -> Result<(), ClientError> {
        self.send("the settings of the check", verify::postgresql::READ_TABLES, QUERY_LIMIT).await?;
        let what = "the list of tables";
        let tables = self.read(what, verify::postgresql::TABLES, QUERY_LIMIT, verify::pairs).await?;
        for (schema, table) in tables {
            let statement = verify::postgresql::count(&schema, &table);
            let rows = self.read_table(format!("{database}.{schema}.{table}"), &statement, found).await?;
            if verify::postgresql::is_of_user(&schema) {
                found.add(rows);
            }
        }
        self.check_structure(database, found).await
    }

    /// Compares the indexes with their tables by the extension amcheck, where the engine has it: in a scratch
    /// database, which is the only one that is verified, it may be created.
    async fn check_structure(&self, database: &str, found: &mut Verified) -> Result<(), ClientError> {
        let what = "whether amcheck can be created";
        if !self
            .read(what, verify::postgresql::HAS_AMCHECK, QUERY_LIMIT, |it| Some(verify::is_true(it)))
            .await?
        {
            return Ok(());
        }
        self.send("the creation of amcheck", verify::postgresql::CREATE_AMCHECK, QUERY_LIMIT).await?;
        let what = "the schema of amcheck";
        let schemas =
            self.read(what, verify::postgresql::SCHEMA_OF_AMCHECK, QUERY_LIMIT, verify::names).await?;
        let Some(amcheck) = schemas.first() else {
            return Err(ClientError::Unreadable { what, reason: "it is not there".to_owned() });
        };
        let what = "the list of tables for amcheck";
        for (schema, table) in self.read(what, verify::postgresql::HEAPS, QUERY_LIMIT, verify::pairs).await? {
            let statement = verify::postgresql::check_heap(amcheck, &schema, &table);
            let why = self.fault("the check of a table by amcheck", &statement).await?;
            let table = format!("{database}.{schema}.{table}");
            found.findings.extend(why.map(|why| Finding::Corrupt { table, why }));
        }
        let what = "the list of indexes";
        let indexes = self.read(what, verify::postgresql::INDEXES, QUERY_LIMIT, verify::pairs).await?;
        found.add_indexes(indexes.len());
        for (schema, index) in indexes {
            let statement = verify::postgresql::check_index(amcheck, &schema, &index);
            let why = self.fault("the check of an index by amcheck", &statement).await?;
            let index = format!("{database}.{schema}.{index}");
            found.findings.extend(why.map(|why| Finding::Index { index, why }));
        }
        Ok(())
    }

    /// The fault that a statement of amcheck shows: in its answer, or as the engine's refusal.
    async fn fault(&self, what: &'static str, statement: &str) -> Result<Option<String>, ClientError> {
        let first = |rows: &[Row]| Some(rows.first().map(|row| row.first().cloned().flatten()));
        match self.read(what, statement, TABLE_LIMIT, first).await {
            // A function without a result has one empty field.
            Ok(answer) => Ok(answer.flatten().filter(|text| !text.is_empty())),
            Err(ClientError::Refused { reason, .. }) => Ok(Some(reason)),
            Err(error) => Err(error),
        }
    }

    /// Carries out the query of a BackupSchedule.
    pub(super) async fn carry_out(&self, query: &str, found: &mut Verified) -> Result<(), ClientError> {
        let judge = |rows: &[Row]| Some((!verify::is_true(rows)).then(|| verify::shown(rows)));
        match self.read("spec.verify.query", query, TABLE_LIMIT, judge).await {
            Ok(wrong) => found.findings.extend(wrong.map(Finding::Answer)),
            Err(ClientError::Refused { reason, .. }) => found.findings.push(Finding::QueryRefused(reason)),
            Err(error @ ClientError::TooLarge { .. }) => {
                found.findings.push(Finding::QueryRefused(error.to_string()));
            }
            Err(error) => return Err(error),
        }
        Ok(())
    }
}

/// Every database of a PostgreSQL has connections of its own.
pub(super) async fn every_database(access: &Access, found: &mut Verified) -> Result<(), ClientError> {
    let session = Session::open(access).await?;
    let what = "the list of databases";
    let databases = session.read(what, verify::postgresql::DATABASES, QUERY_LIMIT, verify::names).await?;
    for database in databases {
        let access = Access { database: database.clone(), ..access.clone() };
        Session::open(&access).await?.verify_postgresql(&database, found).await?;
    }
    // Once everything was read.
    let what = "the number of checksum failures";
    let failures = session.read(what, verify::postgresql::CHECKSUMS, QUERY_LIMIT, verify::number).await?;
    found.findings.extend((failures > 0).then_some(Finding::Checksums(failures)));
    Ok(())
}
