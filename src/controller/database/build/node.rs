//! Builds the Node: what the Database asks of its machine.

use kube::{Resource, ResourceExt};

use super::owned;
use crate::api::keys::STATEFUL_SET_ANNOTATION;
use crate::api::names::Names;
use crate::api::{Database, Node, NodeSpec};

/// What the spec asks of the machine; `zone` is the volume's, once it has one. It is not an adopted one.
pub fn node_spec(database: &Database, zone: Option<&str>) -> NodeSpec {
    let spec = &database.spec;
    NodeSpec {
        node_class_name: spec.node_class_name.clone(),
        instance_types: spec.instance_types.clone(),
        zones: spec.zones.clone(),
        zone: zone.map(str::to_owned),
        instance_id: None,
        release: false,
        replaced_before: 0,
    }
}

/// The Node of this ordinal.
pub fn node(database: &Database, names: &Names, ordinal: i32, zone: Option<&str>) -> Node {
    let name = names.node(ordinal);
    let mut node = Node::new(&name, node_spec(database, zone));
    *node.meta_mut() = owned(names, &name);
    if names.stateful_set != names.database {
        let set = (STATEFUL_SET_ANNOTATION.to_owned(), names.stateful_set.clone());
        node.annotations_mut().extend([set]);
    }
    node
}
