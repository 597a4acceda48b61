//! Has PostgreSQL show its certificate, and load the one in its files.

use std::time::Duration;

use tokio::time::sleep;

use super::access::{Access, ClientError, Tls, within};
use super::reload::LOADING_PAUSE;
use super::session::{QUERY_LIMIT, Session};
use crate::engine::certificate::Certificate;
use crate::engine::reload::RELOAD;
use crate::engine::verify::Row;

/// How long all of it may take: other databases wait for it.
const LIMIT: Duration = Duration::from_secs(15);

/// What an engine does with a certificate.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Loaded {
    /// It shows the certificate.
    Shown,
    /// It shows another one, and so do its files: the kubelet has not updated them.
    NotInFiles,
    /// It has loaded its files, which have the certificate, and shows another one.
    Refused,
}

/// The certificates of the server and of its issuers, as its machine has them now.
const FILE: &str = "SELECT pg_catalog.pg_read_file(pg_catalog.current_setting('ssl_cert_file'))";

/// Has the engine show this certificate, if its files have it.
pub(super) async fn load(access: &Access, certificate: &Certificate) -> Result<Loaded, ClientError> {
    let access = Access { tls: Tls::Required, ..access.clone() };
    within("its certificate", access.limit(LIMIT), loaded(&access, certificate)).await
}

async fn loaded(access: &Access, certificate: &Certificate) -> Result<Loaded, ClientError> {
    let (session, shown) = Session::shown(access).await?;
    if shown == certificate.chain {
        return Ok(Loaded::Shown);
    }
    if session.certificates().await? != certificate.text {
        return Ok(Loaded::NotInFiles);
    }
    let before = session.loaded().await?;
    session.send("pg_reload_conf()", RELOAD, QUERY_LIMIT).await?;
    loop {
        sleep(LOADING_PAUSE).await;
        let (session, shown) = Session::shown(access).await?;
        // The server loads its settings, and then its certificate, before it lets another client in
        // (PostgreSQL, src/backend/postmaster/postmaster.c).
        if session.loaded().await? != before {
            let is_shown = shown == certificate.chain;
            return Ok(if is_shown { Loaded::Shown } else { Loaded::Refused });
        }
    }
}

impl Session {
    async fn certificates(&self) -> Result<String, ClientError> {
        let only = |rows: &[Row]| rows.first()?.first()?.clone();
        self.read("the file of its certificate", FILE, QUERY_LIMIT, only).await
    }
}
