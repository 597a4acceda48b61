//! The engines of a house: what runs in a pod holds a checkpoint or none, and is gone with its process.

use std::net::IpAddr;
use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use freehold::api::database::EngineType;
use freehold::api::database_user::UserRole;
use freehold::engine::archiver::Archiver;
use freehold::engine::certificate::Certificate;
use freehold::engine::checkpoint::CheckpointStatus;
use freehold::engine::client::{Access, ClientError, Engines, Loaded};
use freehold::engine::reload::{Change, Verdict};
use freehold::engine::users::{Login, Mark, ShownUser, WantedUser};
use freehold::engine::verify::{Finding, Verified};
use freehold_rig::Server;
use jiff::Timestamp;
use parking_lot::Mutex;

use super::archived::Archive;
use super::certified::Certificates;
use super::configured::Configured;
use super::users::Users;
use crate::model_cloud::Way;

/// One checkpoint, of the engine at an address.
#[derive(Clone, Debug)]
pub struct Checkpoint {
    pub address: IpAddr,
    pub began_at: Timestamp,
    pub ended_at: Option<Timestamp>,
}

/// Every checkpoint that was ever begun.
#[derive(Clone, Default)]
pub struct Checkpoints(Arc<Mutex<Vec<Checkpoint>>>);

impl Checkpoints {
    /// Those that are held by an engine that runs.
    pub fn held(&self, server: &Server) -> Vec<Checkpoint> {
        let all = self.0.lock();
        all.iter().filter(|it| it.ended_at.is_none() && is_there(server, it.address)).cloned().collect()
    }

    /// All of them.
    pub fn all(&self) -> Vec<Checkpoint> {
        self.0.lock().clone()
    }
}

/// The tables that each engine says are suspended.
#[derive(Clone, Default)]
pub struct Suspended(Arc<Mutex<Vec<String>>>);

impl Suspended {
    /// These are, from now on.
    pub fn set(&self, tables: &[&str]) {
        *self.0.lock() = tables.iter().map(|it| (*it).to_owned()).collect();
    }
}

/// The password that the engine takes. Each house has one database, which stores it in its data: the first
/// one is that of the first connection.
#[derive(Clone, Default)]
pub struct Passwords {
    taken: Arc<Mutex<Option<String>>>,
    /// Its users beside the administrator.
    pub users: Users,
    /// The certificates that it shows.
    pub certificates: Certificates,
    /// How the archive of its log fares.
    pub archive: Archive,
}

impl Passwords {
    /// It, once an operator has connected.
    pub fn taken(&self) -> Option<String> {
        self.taken.lock().clone()
    }

    fn change(&self, access: &Access, next: &str) -> Result<(), ClientError> {
        let mut taken = self.taken.lock();
        let of_now = taken.get_or_insert_with(|| access.password.clone());
        if ![access.password.as_str(), next].contains(&of_now.as_str()) {
            let reason = "password authentication failed".to_owned();
            return Err(ClientError::Connect { address: access.address, reason });
        }
        next.clone_into(of_now);
        Ok(())
    }
}

/// The engines as one start of an operator reaches them.
pub struct Reached {
    pub server: Server,
    pub checkpoints: Checkpoints,
    pub suspended: Suspended,
    pub passwords: Passwords,
    pub configured: Configured,
    pub way: Way,
    pub now: Box<dyn Fn() -> Timestamp + Send + Sync>,
}

/// Whether a process listens at this address: each start of a container has an address of its own here.
fn is_there(server: &Server, address: IpAddr) -> bool {
    let address = address.to_string();
    server.objects("pods").iter().any(|pod| pod["status"]["podIP"] == address.as_str())
}

impl Reached {
    async fn passes<T>(
        &self,
        action: &'static str,
        access: &Access,
        act: impl FnOnce(&mut Vec<Checkpoint>) -> Result<T, ClientError> + Send,
    ) -> Result<T, ClientError> {
        let passage = (self.way)(action);
        let limit = Duration::from_secs(40);
        let silent = || ClientError::Silent { what: action, limit };
        // A connection that nothing is sent over for so long is closed, like one that is never answered.
        if passage.there > limit {
            tokio::time::sleep(passage.there).await;
            return Err(silent());
        }
        tokio::time::sleep(passage.there).await;
        let answer = if is_there(&self.server, access.address) {
            act(&mut self.checkpoints.0.lock())
        } else {
            Err(ClientError::Connect { address: access.address, reason: "no process listens".to_owned() })
        };
        if passage.back > limit {
            tokio::time::sleep(limit).await;
            return Err(silent());
        }
        tokio::time::sleep(passage.back).await;
        answer
    }
}

fn held(all: &[Checkpoint], access: &Access) -> Option<usize> {
    all.iter().position(|it| it.address == access.address && it.ended_at.is_none())
}

#[async_trait]
impl Engines for Reached {
    async fn checkpoint(&self, access: &Access) -> Result<CheckpointStatus, ClientError> {
        let read = |all: &mut Vec<Checkpoint>| Ok(held(all, access).map(|number| all[number].began_at));
        let held_since = self.passes("DescribeCheckpoint", access, read).await?;
        Ok(CheckpointStatus { held_since, now: (self.now)() })
    }

    async fn create_checkpoint(&self, access: &Access) -> Result<Timestamp, ClientError> {
        let create = |all: &mut Vec<Checkpoint>| {
            if held(all, access).is_some() {
                let reason = "Waiting for CHECKPOINT RELEASE to be called".to_owned();
                return Err(ClientError::Refused { what: "CHECKPOINT CREATE", reason });
            }
            // QuestDB counts in microseconds.
            let began_at = Timestamp::from_microsecond((self.now)().as_microsecond()).unwrap();
            all.push(Checkpoint { address: access.address, began_at, ended_at: None });
            Ok(began_at)
        };
        self.passes("CreateCheckpoint", access, create).await
    }

    async fn release_checkpoint(&self, access: &Access, began_at: Timestamp) -> Result<(), ClientError> {
        let release = |all: &mut Vec<Checkpoint>| {
            if let Some(number) = held(all, access).filter(|number| all[*number].began_at == began_at) {
                all[number].ended_at = Some((self.now)());
            }
            Ok(())
        };
        self.passes("ReleaseCheckpoint", access, release).await
    }

    async fn change_password(&self, access: &Access, next: &str) -> Result<(), ClientError> {
        let passwords = self.passwords.clone();
        let change = |_: &mut Vec<Checkpoint>| passwords.change(access, next);
        self.passes("ChangePassword", access, change).await
    }

    async fn user(
        &self,
        access: &Access,
        username: &str,
        _role: UserRole,
        databases: &[String],
    ) -> Result<ShownUser, ClientError> {
        let read = |_: &mut Vec<Checkpoint>| Ok(self.passwords.users.shown(username, databases));
        self.passes("DescribeUser", access, read).await
    }

    async fn login(&self, access: &Access) -> Result<Login, ClientError> {
        let tried = |_: &mut Vec<Checkpoint>| Ok(self.passwords.users.login(access));
        self.passes("Login", access, tried).await
    }

    async fn put_user(&self, access: &Access, user: &WantedUser, password: &str) -> Result<(), ClientError> {
        let put = |_: &mut Vec<Checkpoint>| self.passwords.users.put(user, password);
        self.passes("PutUser", access, put).await
    }

    async fn drop_user(&self, access: &Access, username: &str, mark: &Mark) -> Result<(), ClientError> {
        let end = |_: &mut Vec<Checkpoint>| self.passwords.users.end(username, mark);
        self.passes("DropUser", access, end).await
    }

    async fn judge_settings(&self, access: &Access, change: &Change) -> Result<Verdict, ClientError> {
        let says = |_: &mut Vec<Checkpoint>| {
            self.configured.look(&self.server, (self.now)());
            Ok(Configured::judge(change))
        };
        self.passes("JudgeSettings", access, says).await
    }

    async fn reload_settings(&self, access: &Access, _: &Change, file: &str) -> Result<bool, ClientError> {
        let load = |_: &mut Vec<Checkpoint>| {
            self.configured.look(&self.server, (self.now)());
            Ok(self.configured.load(access, file, (self.now)()))
        };
        self.passes("ReloadSettings", access, load).await
    }

    async fn load_certificate(
        &self,
        access: &Access,
        certificate: &Certificate,
    ) -> Result<Loaded, ClientError> {
        let certificates = &self.passwords.certificates;
        let load =
            |_: &mut Vec<Checkpoint>| Ok(certificates.load(access, certificate, &self.server, (self.now)()));
        self.passes("LoadCertificate", access, load).await
    }

    async fn archiver(&self, access: &Access) -> Result<Archiver, ClientError> {
        let says = |_: &mut Vec<Checkpoint>| Ok(self.passwords.archive.says(access.address));
        self.passes("DescribeArchiver", access, says).await
    }

    async fn switch_log(&self, access: &Access) -> Result<(), ClientError> {
        let switch = |_: &mut Vec<Checkpoint>| {
            self.passwords.archive.begin(access.address);
            Ok(())
        };
        self.passes("SwitchLog", access, switch).await
    }

    async fn flush(
        &self,
        access: &Access,
        _statement: &'static str,
        _limit: Duration,
    ) -> Result<(), ClientError> {
        let begin = |_: &mut Vec<Checkpoint>| Ok(self.configured.begin_flush((self.now)()));
        let takes = self.passes("Flush", access, begin).await?;
        tokio::time::sleep(takes).await;
        Ok(())
    }

    async fn verify(
        &self,
        access: &Access,
        _engine: EngineType,
        _query: Option<&str>,
    ) -> Result<Verified, ClientError> {
        let findings = self.suspended.0.lock().iter().cloned().map(Finding::Suspended).collect();
        let verified = Verified { tables: 1, rows: 300, indexes: None, findings };
        self.passes("DescribeTables", access, |_| Ok(verified)).await
    }
}
