//! Observe, DatabaseUser: reads everything that the plan depends on. Only reads.

use k8s_openapi::api::core::v1::{Pod, Secret};
use kube::ResourceExt;
use kube::api::{Api, ListParams};

use super::build;
use crate::api::database::EngineType;
use crate::api::{Database, DatabaseUser};
use crate::cluster::{controller_of, finalizer, if_served};
use crate::controller::database::build::value;
use crate::controller::database::observe::child::{Child, Credentials, secret};
use crate::controller::engine_access::{EnginePod, access, engine, engine_pod, is_of};
use crate::controller::pass::context::Context;
use crate::engine::client::Access;
use crate::engine::postgresql::MAINTENANCE_DATABASE;
use crate::engine::users::{Login, ShownUser};
use crate::settings::Timing;

/// Everything that the plan of a DatabaseUser depends on.
#[derive(Clone, Debug)]
pub struct Observed {
    /// The DatabaseUser, read fresh.
    pub user: DatabaseUser,
    /// Its Database.
    pub database: Option<Database>,
    /// The Secret of the name that its own has.
    pub secret: Credentials,
    /// The pod of the engine.
    pub pod: EnginePod,
    /// What the engine has of the user.
    pub engine: EngineView,
    /// What the engine says of a connection with the password of the Secret; `None` where none was tried.
    pub login: Option<Login>,
    /// The name of the DatabaseUser that the user in the engine belongs to: another one of this Database.
    pub rival: Option<String>,
    /// The durations.
    pub timing: Timing,
}

/// What an engine says of a user.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum EngineView {
    /// It was not asked.
    NotRead,
    /// It gave no answer; why.
    Unreadable(String),
    /// It says this, over this access of its administrator.
    Shown(Box<Access>, ShownUser),
}

/// Reads; `None` when the object is gone, is another of its name, or is deleted and no more ours.
pub async fn observe(user: &DatabaseUser, ctx: &Context) -> Result<Option<Observed>, kube::Error> {
    let (namespace, name) = (user.namespace().unwrap_or_default(), user.name_any());
    let users = Api::<DatabaseUser>::namespaced(ctx.client.clone(), &namespace);
    let is_it = |fresh: &DatabaseUser| {
        let is_left = fresh.metadata.deletion_timestamp.is_some() && !finalizer::has(fresh);
        fresh.metadata.uid == user.metadata.uid && !is_left
    };
    let Some(user) = users.get_opt(&name).await?.filter(is_it) else { return Ok(None) };
    let databases = Api::<Database>::namespaced(ctx.client.clone(), &namespace);
    let database = if_served(databases.get_opt(&user.spec.database_name).await)?;
    let secrets = Api::<Secret>::namespaced(ctx.client.clone(), &namespace);
    let is_ours =
        |secret: &Secret| controller_of(secret).map(|owner| &owner.uid) == user.metadata.uid.as_ref();
    let secret = secret(&secrets, &user.secret_name(), is_ours).await?;
    let mut observed = Observed {
        database,
        secret,
        pod: EnginePod::Absent,
        engine: EngineView::NotRead,
        login: None,
        rival: None,
        timing: ctx.timing.clone(),
        user,
    };
    if let Some(database) = observed.database.clone().filter(has_users) {
        ask(&mut observed, &database, &namespace, ctx).await?;
        observed.rival = rival(&observed, &users).await?;
        observed.login = login(&observed, ctx).await;
    }
    Ok(Some(observed))
}

/// Whether Freehold knows how its engine keeps users.
pub fn has_users(database: &Database) -> bool {
    database.spec.engine.kind == EngineType::Postgresql
}

/// Asks the engine, if it accepts connections.
async fn ask(
    observed: &mut Observed,
    database: &Database,
    namespace: &str,
    ctx: &Context,
) -> Result<(), kube::Error> {
    let of = engine(database);
    let pods = Api::<Pod>::namespaced(ctx.client.clone(), namespace);
    let pod = pods.get_opt(&of.pod_name).await?.filter(|pod| is_of(pod, database));
    observed.pod = engine_pod(pod.as_ref(), of.container_name.as_deref());
    let EnginePod::Running { address, is_ready: true, .. } = observed.pod else { return Ok(()) };
    observed.engine = match access(&of, namespace, address, ctx).await? {
        Err(why) => EngineView::Unreadable(why),
        Ok(access) => {
            let access = Access { database: MAINTENANCE_DATABASE.to_owned(), ..access };
            let spec = &observed.user.spec;
            let wanted: Vec<String> = observed.user.databases().into_iter().map(str::to_owned).collect();
            match ctx.engines.user(&access, &spec.username, spec.role, &wanted).await {
                Ok(shown) => EngineView::Shown(Box::new(access), shown),
                Err(error) => EngineView::Unreadable(error.to_string()),
            }
        }
    };
    Ok(())
}

/// Connects as the user, if the engine was given the password that is in force. Without an answer it is as it
/// was made.
async fn login(observed: &Observed, ctx: &Context) -> Option<Login> {
    let (EngineView::Shown(access, shown), Credentials::Read(Child::Ours(secret))) =
        (&observed.engine, &observed.secret)
    else {
        return None;
    };
    let mark = shown.role.as_ref()?.mark.as_ref()?;
    let is_ours = Some(&mark.uid) == observed.user.metadata.uid.as_ref();
    // One that is being changed, or is locked since a restore, is given its password anyway.
    if !is_ours || mark.change.is_some() || !build::has_password_in_force(mark, &secret.0) {
        return None;
    }
    let user = Access {
        username: observed.user.spec.username.clone(),
        password: value(&secret.0, "password")?,
        database: tried_in(&observed.user, shown).to_owned(),
        ..(**access).clone()
    };
    ctx.engines.login(&user).await.ok()
}

/// The database that the user is tried in: the first one that exists, which the Secret names.
pub fn tried_in<'a>(user: &'a DatabaseUser, shown: &'a ShownUser) -> &'a str {
    build::existing(user, &shown.missing).next().unwrap_or(MAINTENANCE_DATABASE)
}

/// The DatabaseUser that the user in the engine says it is of, if that is another one of this Database. A
/// restored database has the users of the one that was backed up.
async fn rival(observed: &Observed, users: &Api<DatabaseUser>) -> Result<Option<String>, kube::Error> {
    let EngineView::Shown(_, shown) = &observed.engine else { return Ok(None) };
    let mark = shown.role.as_ref().and_then(|role| role.mark.as_ref());
    let Some(other) = mark.filter(|mark| Some(&mark.uid) != observed.user.metadata.uid.as_ref()) else {
        return Ok(None);
    };
    let spec = &observed.user.spec;
    let is_it = |it: &DatabaseUser| {
        it.metadata.uid.as_ref() == Some(&other.uid)
            && it.spec.database_name == spec.database_name
            && it.spec.username == spec.username
    };
    let all = users.list(&ListParams::default()).await?.items;
    Ok(all.iter().find(|it| is_it(it)).map(ResourceExt::name_any))
}
