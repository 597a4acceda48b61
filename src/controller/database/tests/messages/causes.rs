//! An example of each cause of a replacement, of a restart, and of what else is reported.

use super::*;

pub(super) fn replace_causes() -> Vec<ReplaceCause> {
    complete([
        ReplaceCause::Lost {
            reason: LostReason(Reason::InstanceTerminated),
            message: Some(t("MESSAGE OF LOST")),
        },
        ReplaceCause::Lost { reason: LostReason(Reason::InstanceLost), message: None },
        ReplaceCause::KubernetesNodeDeleted { message: t("MESSAGE") },
        ReplaceCause::EventScheduled { message: t("MESSAGE") },
        ReplaceCause::Cordoned { message: t("MESSAGE") },
        ReplaceCause::NodeDeleted { node: t("orders-1") },
        ReplaceCause::TypeNotWanted { instance_type: t("r7i.large") },
        ReplaceCause::Misplaced { machine: t("us-east-1c"), disk: t("us-east-1b") },
    ])
}

pub(super) fn restart_causes() -> Vec<RestartCause> {
    let moved = |cause: Option<String>| RestartCause::Moved {
        pod: t("orders-0"),
        from: t("ip-1"),
        to: t("ip-2"),
        cause,
    };
    complete([
        RestartCause::Image { from: t("questdb:1"), to: t("questdb:2") },
        RestartCause::Resources,
        RestartCause::Settings,
        RestartCause::Template,
        RestartCause::Password,
        RestartCause::WentBack,
        RestartCause::NotStarting,
        RestartCause::VolumeModified,
        RestartCause::NoRoom,
        RestartCause::AlteredTemplate,
        RestartCause::AlteredFiles,
        moved(Some(t("CAUSE"))),
        moved(None),
    ])
}

pub(super) fn alterations() -> Vec<Alteration> {
    complete([
        Alteration::Repeated { object: ObjectName::new(ObjectKind::ConfigMap, "orders"), until: at(0) },
        Alteration::SpecRefused { object: ObjectName::new(ObjectKind::StatefulSet, "orders") },
        Alteration::Pod { pod: t("orders-0"), cause: RestartCause::AlteredFiles },
    ])
}

pub(super) fn node_deletions() -> Vec<NodeDeletion> {
    complete([
        NodeDeletion::DatabaseDeleted,
        NodeDeletion::DatabaseReleased,
        NodeDeletion::DatabasePaused,
        NodeDeletion::PodRemains,
        NodeDeletion::MovedTo(t("orders-2")),
        NodeDeletion::NotNeeded(t("orders-1")),
        NodeDeletion::Unfit(ReplaceCause::NodeDeleted { node: t("orders-1") }),
    ])
}
