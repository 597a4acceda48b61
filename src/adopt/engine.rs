//! Recognises the engine of a container by its image. Pure.

use k8s_openapi::apimachinery::pkg::util::intstr::IntOrString;

use super::found::Found;
use super::image::{Recognised, recognise};
use super::wanted::Wanted;
use crate::api::database::{CustomEngine, Engine, EngineType};
use crate::command::finding::Finding;
use crate::engine;

/// The lowest port of a custom engine, whose container has no privileges.
const FIRST_PORT: i32 = 1024;

/// The engine as the Database names it, or why it cannot be named.
pub fn engine(found: &Found, wanted: &Wanted) -> Result<Engine, Finding> {
    let subject = found.subject();
    let container = found.engine().ok_or_else(|| Finding::blocker(&subject, "it has no container"))?;
    let image = container.image.as_deref().unwrap_or_default();
    let Recognised { kind, version } = recognise(image);
    if kind == EngineType::Custom || wanted.custom {
        return custom(found, image);
    }
    let Some(version) = wanted.engine_version.as_deref().or(version) else {
        let way_out = "read the release from the server and give it, such as --engine-version 15.7, or adopt \
            the image as it is with --custom (spec.engine.type cannot change later)";
        let message =
            format!("the image {image} of container {} does not say a whole release", container.name);
        return Err(Finding::blocker(subject, message).way_out(way_out));
    };
    let engine = Engine { kind, version: Some(version.to_owned()), custom: None };
    match engine::profile(&engine, &std::collections::BTreeMap::new()) {
        Ok(_) => Ok(engine),
        Err(error) => Err(Finding::blocker(subject, format!("Freehold does not offer this engine: {error}"))
            .way_out("adopt the image as it is with --custom (spec.engine.type cannot change later)")),
    }
}

/// The image as it is. Port, path and user are for the record: an adopted database keeps its template.
fn custom(found: &Found, image: &str) -> Result<Engine, Finding> {
    let subject = found.subject();
    let by_hand = "write the Database by hand: docs/adopt.md, \"By hand\"";
    let Some(data_path) = found.data_path() else {
        let message = "the engine's container does not mount the claim of the data";
        return Err(Finding::blocker(subject, message).way_out(by_hand));
    };
    let Some(port) = port(found) else {
        let message = "neither the engine's container nor a Service names a port from 1024 on";
        return Err(Finding::blocker(subject, message).way_out(by_hand));
    };
    let custom = CustomEngine {
        image: image.to_owned(),
        port,
        data_path: data_path.to_owned(),
        user_id: user_id(found).unwrap_or(10001),
        credentials: None,
    };
    let engine = Engine { kind: EngineType::Custom, version: None, custom: Some(custom) };
    match engine::profile(&engine, &std::collections::BTreeMap::new()) {
        Ok(_) => Ok(engine),
        Err(error) => {
            let message = format!("the image cannot be adopted as it is: {error}");
            Err(Finding::blocker(subject, message).way_out(by_hand))
        }
    }
}

/// The first port that clients can reach: of the container, or of a Service.
fn port(found: &Found) -> Option<i32> {
    let of_container = found.engine()?.ports.iter().flatten().map(|port| port.container_port);
    let services = found.services.iter().filter_map(|service| service.spec.as_ref());
    let of_services =
        services.flat_map(|spec| spec.ports.iter().flatten()).map(|port| match &port.target_port {
            Some(IntOrString::Int(number)) => *number,
            Some(IntOrString::String(_)) | None => port.port,
        });
    of_container.chain(of_services).find(|port| *port >= FIRST_PORT)
}

/// The user id that the template sets; none for root, which Freehold never uses.
fn user_id(found: &Found) -> Option<i64> {
    let of_container = found.engine()?.security_context.as_ref().and_then(|it| it.run_as_user);
    let of_pod = || found.template()?.security_context.as_ref()?.run_as_user;
    of_container.or_else(of_pod).filter(|id| *id > 0)
}
