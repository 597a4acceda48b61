//! The act step of the NodeClass controller: carries the plan out. Only writes; it makes no choice.

use kube::Api;

use super::plan::{Action, Plan};
use crate::api::NodeClass;
use crate::cluster::finalizer;
use crate::controller::pass::acted::{ActError, Acted};
use crate::controller::pass::context::Context;

/// Carries out every action in order, up to the first that fails.
pub async fn act(plan: &Plan, class: NodeClass, ctx: &Context) -> Acted<NodeClass> {
    let mut acted = Acted::new(class);
    for action in &plan.actions {
        let result = one(*action, &mut acted, ctx).await;
        if !acted.goes_on(result) {
            break;
        }
    }
    acted
}

async fn one(action: Action, acted: &mut Acted<NodeClass>, ctx: &Context) -> Result<(), ActError> {
    let classes = Api::<NodeClass>::all(ctx.client.clone());
    match action {
        Action::AddFinalizer => acted.object = finalizer::add(&classes, &acted.object).await?,
        Action::RemoveFinalizer => {
            finalizer::remove(&classes, &acted.object).await?;
            acted.finished = true;
        }
    }
    Ok(())
}
