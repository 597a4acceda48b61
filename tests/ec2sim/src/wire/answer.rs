//! Answers as XML, in the shape of EC2's API version 2016-11-15.

use std::io;

use super::{
    lists, resources,
    xml::{Written, Xml},
};
use crate::{Refusal, Response};

/// The namespace of the answers.
const NAMESPACE: &str = "http://ec2.amazonaws.com/doc/2016-11-15/";

/// The answer to `action`.
pub(super) fn response(action: &str, response: &Response, account: &str) -> io::Result<Vec<u8>> {
    let mut xml = Xml::new(account);
    xml.root(&format!("{action}Response"), NAMESPACE, |xml| {
        xml.text("requestId", REQUEST_ID)?;
        body(xml, response)
    })?;
    Ok(xml.into_bytes())
}

/// All requests have the same id: what became of them is in the journal.
const REQUEST_ID: &str = "00000000-0000-4000-8000-000000000000";

/// A refusal.
pub(super) fn refusal(refusal: &Refusal) -> Vec<u8> {
    let mut xml = Xml::new("");
    let written = xml.node("Response", |xml| {
        xml.node("Errors", |xml| {
            xml.node("Error", |xml| {
                xml.text("Code", &refusal.code)?;
                xml.text("Message", &refusal.message)
            })
        })?;
        xml.text("RequestID", REQUEST_ID)
    });
    if let Err(error) = written {
        tracing::error!(%error, "failed to write a refusal");
    }
    xml.into_bytes()
}

fn body(xml: &mut Xml, response: &Response) -> Written {
    match response {
        Response::RunInstances(reservation) => resources::reservation(xml, reservation),
        Response::StateChanges(changes) => xml.list("instancesSet", changes, resources::state_change),
        Response::Done => xml.flag("return", true),
        Response::Instances(page) => lists::page(xml, "reservationSet", page, resources::reservation),
        Response::InstanceStatuses(page) => {
            lists::page(xml, "instanceStatusSet", page, resources::instance_status)
        }
        Response::ConsoleOutput { instance_id, at, output } => {
            xml.text("instanceId", instance_id)?;
            xml.time("timestamp", *at)?;
            xml.text("output", &data_encoding::BASE64.encode(output.as_bytes()))
        }
        Response::Volume(volume) => resources::volume(xml, volume),
        Response::Volumes(page) => lists::page(xml, "volumeSet", page, resources::described_volume),
        Response::VolumeStatuses(page) => lists::page(xml, "volumeStatusSet", page, resources::volume_status),
        Response::Attachment(attachment) => resources::attachment(xml, attachment),
        Response::Modification(modification) => {
            xml.node("volumeModification", |xml| resources::modification(xml, modification))
        }
        Response::Modifications(page) => {
            lists::page(xml, "volumeModificationSet", page, resources::modification)
        }
        Response::Snapshot(snapshot) => resources::snapshot(xml, snapshot),
        Response::Snapshots(page) => lists::page(xml, "snapshotSet", page, resources::snapshot),
        Response::Tags(page) => lists::page(xml, "tagSet", page, lists::tag),
        Response::Subnets(page) => lists::page(xml, "subnetSet", page, lists::subnet),
        Response::Zones(zones) => xml.list("availabilityZoneInfo", zones, lists::zone),
        Response::InstanceTypes(page) => lists::page(xml, "instanceTypeSet", page, lists::instance_type),
        Response::Images(page) => lists::page(xml, "imagesSet", page, lists::image),
        Response::SecurityGroups(page) => lists::page(xml, "securityGroupInfo", page, lists::security_group),
    }
}
