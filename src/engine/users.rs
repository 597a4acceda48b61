//! The users of a PostgreSQL beside its administrator: what is read of one, and the statements that make it.
//!
//! The rights on a database are those of three roles without a login, `freehold_read_`,
//! `freehold_write_` and `freehold_owner_` with the name of the database. A user is a member of one of them.
//! What an owner creates belongs to `freehold_owner_`, so that it outlives the user, and the others of that
//! role may change it. Every statement names objects of `pg_catalog` only, under a search path that holds
//! nothing else: a user of the database may have created objects of any name.

pub mod rights;

use std::collections::BTreeSet;
use std::time::Duration;

use super::verify::{Row, literal, quoted};
use crate::api::database_user::UserRole;
use crate::api::keys::{GROUP_COMMENT, USER_COMMENT};

/// The options of every connection that these statements are sent over: a lock is awaited for as long as the
/// one, and a statement for as long as the other.
pub fn options(lock: Duration, statement: Duration) -> String {
    let (lock, statement) = (lock.as_secs(), statement.as_secs());
    format!(
        "-c search_path=pg_catalog -c default_transaction_read_only=off -c synchronous_commit=on \
        -c lock_timeout={lock}s -c statement_timeout={statement}s"
    )
}

/// The role that owns what a user leaves in a database without owners. It has no right, and no member.
const LEFT: &str = "freehold_left";

/// Counts with the rights of the three roles: those of another number are given anew.
pub const RIGHTS_VERSION: u32 = 1;

/// What the last word of the comment of a user that is being changed begins with; with the second one, the
/// user was another DatabaseUser's.
const PENDING: &str = "pending";
const TAKEN: &str = "taken";

/// The end of the last word of a user's comment in data of a backup: the start of the engine has locked the
/// user (postgresql/start.sh), and its DatabaseUser lets it in again.
const RESTORED: &str = "-restored";

/// Stands for no database.
const NONE: &str = "-";

/// What a user is to be.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct WantedUser {
    /// The name.
    pub username: String,
    /// The comment of its role: what it is made from.
    pub mark: Mark,
    /// The databases in which the rights of Freehold's roles are given before.
    pub to_grant: Vec<String>,
    /// The database that the user is tried in.
    pub tried_in: String,
    /// What the comment was when the user was read; `None` when there was no such role.
    pub before: Option<Mark>,
}

impl WantedUser {
    /// The comment while this attempt changes the user: with all rights of before and of after, so that one
    /// that goes on takes away what is to be taken away, and with the password that the engine has then.
    pub fn pending(&self, attempt: &str) -> Mark {
        let (before, after) = (self.before.as_ref(), &self.mark.rights);
        let role = before.map_or(after.role, |before| before.rights.role.max(after.role));
        let databases = before.iter().flat_map(|before| &before.rights.databases).chain(&after.databases);
        let word = if self.is_taken_over() { TAKEN } else { PENDING };
        Mark {
            rights: Rights { role, databases: databases.cloned().collect() },
            change: Some(format!("{word}-{attempt}")),
            ..self.mark.clone()
        }
    }

    fn is_taken_over(&self) -> bool {
        let is_being = |before: &Mark| before.change.as_ref().is_some_and(|change| change.starts_with(TAKEN));
        self.before.as_ref().is_some_and(|before| before.uid != self.mark.uid || is_being(before))
    }

    /// Whether the user may do something that it may not any more.
    pub fn takes_away(&self) -> bool {
        let Some(before) = &self.before else { return false };
        let (old, new) = (&before.rights, &self.mark.rights);
        self.is_taken_over() || old.role > new.role || !old.databases.is_subset(&new.databases)
    }
}

/// The comment of a user's role. It tells, in one read, what the role was made from, also in restored data.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Mark {
    /// The UID of the DatabaseUser.
    pub uid: String,
    /// What the user may do.
    pub rights: Rights,
    /// The password: which Secret it is from, and its generation there.
    pub password: String,
    /// Which attempt changes the user; `None` when the user is what this says.
    pub change: Option<String>,
}

/// What a user may do, and in which databases.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Rights {
    /// What.
    pub role: UserRole,
    /// In which.
    pub databases: BTreeSet<String>,
}

impl Mark {
    /// The comment.
    pub fn text(&self) -> String {
        let databases = self.rights.databases.iter().map(String::as_str).collect::<Vec<_>>().join(",");
        let databases = if databases.is_empty() { NONE } else { &databases };
        let role: &str = self.rights.role.into();
        let change = self.change.as_ref().map(|change| format!(" {change}")).unwrap_or_default();
        format!("{USER_COMMENT} {} {role} {databases} {}{change}", self.uid, self.password)
    }

    /// Reads a comment. One that Freehold cannot have written is none.
    fn read(comment: &str) -> Option<Self> {
        let words: Vec<&str> = comment.split(' ').collect();
        let is_of = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'_' | b',' | b'/');
        let is_plain = |word: &&str| !word.is_empty() && word.bytes().all(is_of);
        let (mark, rest) = words.split_first()?;
        if *mark != USER_COMMENT || !rest.iter().all(is_plain) {
            return None;
        }
        let (uid, role, databases, password, change) = match *rest {
            [uid, role, databases, password] => (uid, role, databases, password, None),
            [uid, role, databases, password, change] => (uid, role, databases, password, Some(change)),
            _ => return None,
        };
        let databases = databases.split(',').filter(|name| *name != NONE).map(str::to_owned).collect();
        Some(Self {
            uid: uid.to_owned(),
            rights: Rights { role: role.parse().ok()?, databases },
            password: password.to_owned(),
            change: change.map(str::to_owned),
        })
    }
}

/// What the engine says of a user.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ShownUser {
    /// The role of this name.
    pub role: Option<ShownRole>,
    /// The databases that do not exist.
    pub missing: Vec<String>,
    /// The databases in which the rights of Freehold's roles were not given: they are new, were created
    /// again, or have those of another release.
    pub lacking: Vec<String>,
}

/// A role.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ShownRole {
    /// What its comment says, if Freehold wrote it.
    pub mark: Option<Mark>,
    /// It may do more than any user of Freehold's: as a superuser does, for example.
    pub is_privileged: bool,
}

/// What the engine says of a user that connects.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Login {
    /// It is let in.
    In,
    /// Its password is another one.
    WrongPassword,
    /// It is not let in, whatever its password; why.
    Refused(String),
}

/// The role that holds these rights on a database.
pub fn group(role: UserRole, database: &str) -> String {
    let role = match role {
        UserRole::Read => "read",
        UserRole::Write => "write",
        UserRole::Owner => "owner",
    };
    format!("freehold_{role}_{database}")
}

/// Asks for the role of this name: its comment, and whether it may do too much.
pub fn role(username: &str) -> String {
    format!(
        "SELECT pg_catalog.shobj_description(oid, 'pg_authid'), \
         rolsuper OR rolcreaterole OR rolcreatedb OR rolreplication OR rolbypassrls \
         FROM pg_catalog.pg_roles WHERE rolname = {}",
        literal(username)
    )
}

/// Reads the answer to [`role`].
pub fn read_role(rows: &[Row]) -> Option<Option<ShownRole>> {
    let Some(row) = rows.first() else { return Some(None) };
    let mark = row.first()?.as_deref().and_then(Mark::read);
    let is_privileged = row.get(1)?.as_deref()? == "t";
    Some(Some(ShownRole { mark, is_privileged }))
}

/// Asks which of these databases exist, and whether the rights of Freehold's roles were given in them.
pub fn databases(role: UserRole, databases: &[String]) -> String {
    let wanted = databases.iter().map(|name| format!("({}, {})", literal(name), literal(&group(role, name))));
    let wanted = wanted.collect::<Vec<_>>().join(", ");
    format!(
        "SELECT wanted.name, EXISTS (SELECT FROM pg_catalog.aclexplode(of.datacl) AS given \
         JOIN pg_catalog.pg_roles AS holder ON holder.oid = given.grantee \
         WHERE holder.rolname = wanted.holder AND given.privilege_type = 'CONNECT' \
         AND pg_catalog.shobj_description(holder.oid, 'pg_authid') = {}) \
         FROM (VALUES {wanted}) AS wanted (name, holder) \
         JOIN pg_catalog.pg_database AS of ON of.datname = wanted.name \
         AND of.datallowconn AND of.datconnlimit <> -2",
        literal(&group_mark())
    )
}

fn group_mark() -> String {
    format!("{GROUP_COMMENT} {RIGHTS_VERSION}")
}

/// The statement that lets the user connect no more.
pub fn lock_out(username: &str, mark: &Mark) -> String {
    let unless_changed = unless_changed(username, Some(mark));
    format!("DO $freehold$ BEGIN {unless_changed} ALTER ROLE {} NOLOGIN; END $freehold$", quoted(username))
}

/// Asks for the time of the engine.
pub const NOW: &str = "SELECT clock_timestamp()";

/// Ends every session of a user that began until then. One that begins while rights are taken away may have
/// those of before, so this follows the commit; one that begins after it has those of after.
pub fn end_sessions(username: &str, until: &str) -> String {
    format!(
        "SELECT pg_terminate_backend(pid)::text FROM pg_stat_activity \
         WHERE usename = {} AND pid <> pg_backend_pid() AND backend_start <= {}::timestamptz",
        literal(username),
        literal(until)
    )
}

/// Asks for the databases in which the user owns something, or was given a right. One whose deletion was
/// interrupted refuses every connection (`datconnlimit` is -2).
pub fn depending(username: &str) -> String {
    format!(
        "SELECT datname FROM pg_database WHERE datallowconn AND datconnlimit <> -2 AND oid IN ( \
         SELECT dbid FROM pg_shdepend JOIN pg_roles AS who ON who.oid = refobjid \
         WHERE refclassid = 'pg_authid'::regclass AND who.rolname = {})",
        literal(username)
    )
}

/// The statement that leaves the user nothing in the database that this is a connection to: what it owns
/// becomes the owners', or that of a role without any right where the database has none, and the rights that
/// others gave it end. Never an administrator's: a function of the user's would run as a superuser then
/// (`SECURITY DEFINER`).
pub fn disown(username: &str, mark: &Mark, database: &str) -> String {
    let (text, left) = (literal(username), literal(LEFT));
    format!(
        "DO $freehold$ DECLARE
  heir name := coalesce((SELECT rolname FROM pg_roles WHERE rolname = {}), {left});
BEGIN
  {}
  IF NOT EXISTS (SELECT FROM pg_roles WHERE rolname = {left}) THEN
    EXECUTE format('CREATE ROLE %I NOLOGIN', {left});
  END IF;
  IF EXISTS (SELECT FROM pg_roles WHERE rolname = heir AND (rolcanlogin OR rolsuper OR rolcreaterole
      OR rolcreatedb OR rolreplication OR rolbypassrls)) THEN
    RAISE EXCEPTION 'role % has a login, or may do too much, to own what a user leaves', quote_ident(heir);
  END IF;
  EXECUTE format('REASSIGN OWNED BY %I TO %I', {text}, heir);
  EXECUTE format('DROP OWNED BY %I', {text});
END $freehold$",
        literal(&group(UserRole::Owner, database)),
        unless_changed(username, Some(mark)),
    )
}

/// The statement that drops the user.
pub fn drop_role(username: &str, mark: &Mark) -> String {
    let unless_changed = unless_changed(username, Some(mark));
    format!("DO $freehold$ BEGIN {unless_changed} DROP ROLE {}; END $freehold$", quoted(username))
}

/// That the role is still as it was read: this process may have stood still, while another operator changed
/// it.
fn unless_changed(username: &str, before: Option<&Mark>) -> String {
    let username = literal(username);
    let changed = match before {
        None => format!("EXISTS (SELECT FROM pg_roles WHERE rolname = {username})"),
        Some(before) => format!(
            "NOT EXISTS (SELECT FROM pg_roles WHERE rolname = {username} \
             AND shobj_description(oid, 'pg_authid') = {})",
            literal(&before.text())
        ),
    };
    format!("IF {changed} THEN RAISE EXCEPTION 'the user was changed meanwhile'; END IF;")
}

/// The statement that gives the user its password and its rights, and says in its comment that it is being
/// changed. The password is in it as the engine stores it, which opens no connection: logs may show
/// statements. A role that a person let connect no more stays so, one that a restore did does not.
pub fn change(user: &WantedUser, attempt: &str, verifier: &str) -> String {
    let (name, text) = (quoted(&user.username), literal(&user.username));
    let create = if user.before.is_none() { format!("CREATE ROLE {name};") } else { String::new() };
    let is_restored = |before: &Mark| before.change.as_ref().is_some_and(|change| change.ends_with(RESTORED));
    let is_ours = |before: &Mark| before.uid == user.mark.uid && !is_restored(before);
    let login = if user.before.as_ref().is_some_and(is_ours) { "" } else { "LOGIN " };
    // What others made it a member of, and what it made members of itself, ends where rights do.
    let all = user.takes_away();
    let role = user.mark.rights.role;
    let rights = user.mark.rights.databases.iter().map(|database| {
        let (holder, place) = (quoted(&group(role, database)), quoted(database));
        let grant = format!("GRANT {holder} TO {name};");
        match role {
            UserRole::Owner => format!("{grant} ALTER ROLE {name} IN DATABASE {place} SET role TO {holder};"),
            UserRole::Read | UserRole::Write => grant,
        }
    });
    let rights = rights.collect::<Vec<_>>().join("\n  ");
    format!(
        "DO $freehold$ DECLARE
  found record;
BEGIN
  {}
  {create}
  ALTER ROLE {name} {login}INHERIT NOSUPERUSER NOCREATEDB NOCREATEROLE NOREPLICATION NOBYPASSRLS
    PASSWORD {};
  FOR found IN SELECT of.rolname AS holder FROM pg_auth_members AS member JOIN pg_roles AS of
      ON of.oid = member.roleid JOIN pg_roles AS who ON who.oid = member.member
      WHERE who.rolname = {text} AND (of.rolname ~ '^freehold_(read|write|owner)_' OR {all}) LOOP
    EXECUTE format('REVOKE %I FROM %I CASCADE', found.holder, {text});
  END LOOP;
  FOR found IN SELECT who.rolname AS holder FROM pg_auth_members AS member JOIN pg_roles AS of
      ON of.oid = member.roleid JOIN pg_roles AS who ON who.oid = member.member
      WHERE of.rolname = {text} AND {all} LOOP
    EXECUTE format('REVOKE %I FROM %I CASCADE', {text}, found.holder);
  END LOOP;
  FOR found IN SELECT of.datname AS place FROM pg_db_role_setting AS setting JOIN pg_database AS of
      ON of.oid = setting.setdatabase JOIN pg_roles AS who ON who.oid = setting.setrole
      WHERE who.rolname = {text} LOOP
    EXECUTE format('ALTER ROLE %I IN DATABASE %I RESET role', {text}, found.place);
  END LOOP;
  {rights}
  COMMENT ON ROLE {name} IS {};
END $freehold$",
        unless_changed(&user.username, user.before.as_ref()),
        literal(verifier),
        literal(&user.pending(attempt).text()),
    )
}

/// The statement that says in the comment that the user is what it is to be.
pub fn confirm(user: &WantedUser, attempt: &str) -> String {
    format!(
        "DO $freehold$ BEGIN {} COMMENT ON ROLE {} IS {}; END $freehold$",
        unless_changed(&user.username, Some(&user.pending(attempt))),
        quoted(&user.username),
        literal(&user.mark.text())
    )
}

#[cfg(test)]
mod tests;
