//! What wakes objects of every controller: the change of an object that a shared copy shows. The copy shows
//! the change before the wake.

use std::fmt::Debug;
use std::sync::Arc;

use futures::{Stream, StreamExt, stream};
use k8s_openapi::NamespaceResourceScope;
use kube::runtime::reflector::{ObjectRef, Store};
use kube::{Resource, ResourceExt};
use serde::de::DeserializeOwned;

use super::context::Context;
use crate::cluster::controller_of_kind;
use crate::cluster::mirror::Mirror;

/// The objects of a changed NodeClass; `class_of` gives the class that one names.
pub fn of_changed_class<K>(
    ctx: &Arc<Context>,
    store: Store<K>,
    class_of: fn(&K) -> &String,
) -> impl Stream<Item = ObjectRef<K>> + Send + 'static
where
    K: Resource<DynamicType = ()> + Clone + Send + Sync + 'static,
{
    ctx.node_classes.changes().flat_map(move |class| {
        let name = class.name_any();
        let of_class = store.state().into_iter().filter(|it| *class_of(it) == name);
        stream::iter(of_class.map(|it| ObjectRef::from_obj(it.as_ref())).collect::<Vec<_>>())
    })
}

/// The object that controls a changed child.
pub fn of_changed_child<K, C>(children: &Mirror<C>) -> impl Stream<Item = ObjectRef<K>> + Send + use<K, C>
where
    K: Resource<DynamicType = (), Scope = NamespaceResourceScope> + 'static,
    C: Resource<DynamicType = ()> + Clone + DeserializeOwned + Debug + Send + Sync + 'static,
{
    children.changes().filter_map(|child| async move {
        let owner = controller_of_kind::<K, _>(&child)?;
        child.namespace().map(|namespace| ObjectRef::new(&owner.name).within(&namespace))
    })
}
