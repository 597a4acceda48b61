//! What is wrong with the user data of a NodeClass, as far as it can be read: what would keep each machine
//! from joining, or the pods of databases off it. Pure.
//!
//! The label and the taint of a database's machine may be absent: Freehold adds them at registration.

mod bottlerocket;
pub mod form;
mod kubelet;
mod mime;
pub mod mistake;
mod node_config;

use self::form::{Form, Platform};
use self::kubelet::{Kubelet, Taint};
use self::mistake::{FEWEST_PODS, LONGEST_USER_DATA, Mistake};
use crate::api::keys::{DEDICATED_LABEL, DEDICATED_TAINT};
use crate::cloud::catalog::Image;

#[cfg(test)]
mod tests;

/// How the keys of taints end that a kubelet sets until a program on the machine is ready, which removes
/// them: the EBS CSI driver's `ebs.csi.aws.com/agent-not-ready`, Cilium's `node.cilium.io/agent-not-ready`.
const STARTUP_TAINTS: [&str; 3] = ["not-ready", "uninitialized", "unready"];

/// Everything that is wrong with the user data, for machines of this image.
pub fn mistakes(user_data: &str, image: Option<&Image>) -> Vec<Mistake> {
    let mut mistakes = Vec::new();
    if user_data.len() > LONGEST_USER_DATA {
        mistakes.push(Mistake::TooLong(user_data.len()));
    }
    let form = Form::of(user_data);
    let platform = image.and_then(|image| Platform::of(&image.name));
    if let Some(platform) = platform.filter(|platform| !platform.reads(form)) {
        mistakes.push(Mistake::Form { platform, form });
        return mistakes;
    }
    match read(user_data, form) {
        Ok(Some(kubelet)) => mistakes.extend(judged(&kubelet, platform)),
        Ok(None) => {}
        Err((form, error)) => mistakes.push(Mistake::Syntax { form, error }),
    }
    mistakes
}

/// What the user data says of the kubelet; nothing if it says that in a script alone.
fn read(user_data: &str, form: Form) -> Result<Option<Kubelet>, (Form, String)> {
    match form {
        Form::Mime => {
            let configs = mime::node_configs(user_data).map_err(|error| (Form::Mime, error))?;
            node_config::read(&configs).map_err(|error| (Form::NodeConfig, error))
        }
        Form::NodeConfig => {
            node_config::read(&[user_data.to_owned()]).map_err(|error| (Form::NodeConfig, error))
        }
        Form::Bottlerocket => bottlerocket::read(user_data).map(Some).map_err(|error| (form, error)),
        Form::Script | Form::CloudInit | Form::Other => Ok(None),
    }
}

fn judged(kubelet: &Kubelet, platform: Option<Platform>) -> Vec<Mistake> {
    let mut mistakes = Vec::new();
    // An image of another kind may have the rest of the configuration in itself.
    if platform.is_some() && !kubelet.absent.is_empty() {
        mistakes.push(Mistake::Incomplete(kubelet.absent.clone()));
    }
    // The last one counts.
    let label = kubelet.labels.iter().rev().find(|(key, _)| key == DEDICATED_LABEL);
    if let Some((_, value)) = label.filter(|(_, value)| value != "true") {
        mistakes.push(Mistake::Label(value.clone()));
    }
    let repelling = kubelet.taints.iter().filter(|taint| repels(taint));
    mistakes.extend(repelling.map(|taint| Mistake::Taint(taint.to_string())));
    if let Some(pods) = kubelet.max_pods.filter(|pods| *pods < FEWEST_PODS) {
        mistakes.push(Mistake::MaxPods(pods));
    }
    mistakes
}

/// Whether the taint keeps the pods of databases off the machine for good.
fn repels(taint: &Taint) -> bool {
    let Taint { key, effect, .. } = taint;
    match effect.as_str() {
        "NoExecute" if key == DEDICATED_TAINT => false,
        "NoExecute" | "NoSchedule" => !STARTUP_TAINTS.iter().any(|end| key.ends_with(end)),
        _ => false,
    }
}
