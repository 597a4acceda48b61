//! Answers as XML, in the shape of EC2's API version 2016-11-15.

use std::io;

use jiff::Timestamp;
use quick_xml::{
    Writer,
    events::{BytesEnd, BytesStart, BytesText, Event},
};

use super::{lists, resources};
use crate::{Refusal, Response};

/// The namespace of the answers.
const NAMESPACE: &str = "http://ec2.amazonaws.com/doc/2016-11-15/";

/// An XML document in the making.
pub(super) struct Xml {
    writer: Writer<Vec<u8>>,
    /// The account that owns everything.
    pub(super) account: String,
}

/// What writing a part comes to.
pub(super) type Written = io::Result<()>;

impl Xml {
    /// `<name>value</name>`.
    pub(super) fn text(&mut self, name: &str, value: &str) -> Written {
        self.writer.create_element(name).write_text_content(BytesText::new(value)).map(drop)
    }

    /// The same for a value that may be absent.
    pub(super) fn optional(&mut self, name: &str, value: Option<&str>) -> Written {
        value.map_or(Ok(()), |value| self.text(name, value))
    }

    /// The same for a number.
    pub(super) fn number(&mut self, name: &str, value: impl Into<u64>) -> Written {
        self.text(name, &value.into().to_string())
    }

    /// The same for a truth value.
    pub(super) fn flag(&mut self, name: &str, value: bool) -> Written {
        self.text(name, if value { "true" } else { "false" })
    }

    /// The same for a moment.
    pub(super) fn time(&mut self, name: &str, value: Timestamp) -> Written {
        self.text(name, &value.strftime("%Y-%m-%dT%H:%M:%S%.3fZ").to_string())
    }

    /// An element around what `inner` writes.
    pub(super) fn node(&mut self, name: &str, inner: impl FnOnce(&mut Self) -> Written) -> Written {
        self.writer.write_event(Event::Start(BytesStart::new(name)))?;
        inner(self)?;
        self.writer.write_event(Event::End(BytesEnd::new(name)))
    }

    /// The text of an `item`.
    pub(super) fn item(&mut self, value: &str) -> Written {
        self.writer.write_event(Event::Text(BytesText::new(value)))
    }

    /// A list: an element with an `item` for each of `items`.
    pub(super) fn list<T>(
        &mut self,
        name: &str,
        items: impl IntoIterator<Item = T>,
        mut item: impl FnMut(&mut Self, T) -> Written,
    ) -> Written {
        self.node(name, |xml| items.into_iter().try_for_each(|one| xml.node("item", |xml| item(xml, one))))
    }
}

/// The answer to `action`.
pub(super) fn response(action: &str, response: &Response, account: &str) -> io::Result<Vec<u8>> {
    let mut xml = Xml { writer: Writer::new(Vec::new()), account: account.to_owned() };
    let name = format!("{action}Response");
    let root = BytesStart::new(name.as_str()).with_attributes([("xmlns", NAMESPACE)]);
    xml.writer.write_event(Event::Start(root))?;
    xml.text("requestId", REQUEST_ID)?;
    body(&mut xml, response)?;
    xml.writer.write_event(Event::End(BytesEnd::new(name.as_str())))?;
    Ok(xml.writer.into_inner())
}

/// All requests have the same id: what became of them is in the journal.
const REQUEST_ID: &str = "00000000-0000-4000-8000-000000000000";

/// A refusal.
pub(super) fn refusal(refusal: &Refusal) -> Vec<u8> {
    let mut xml = Xml { writer: Writer::new(Vec::new()), account: String::new() };
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
    xml.writer.into_inner()
}

fn body(xml: &mut Xml, response: &Response) -> Written {
    match response {
        Response::RunInstances(reservation) => resources::reservation(xml, reservation),
        Response::StateChanges(changes) => xml.list("instancesSet", changes, resources::state_change),
        Response::Done => xml.flag("return", true),
        Response::Instances(page) => lists::page(xml, "reservationSet", page, resources::reservation),
        Response::InstanceStatuses(page) => lists::page(xml, "instanceStatusSet", page, resources::instance_status),
        Response::ConsoleOutput { instance_id, at, output } => {
            xml.text("instanceId", instance_id)?;
            xml.time("timestamp", *at)?;
            xml.text("output", &data_encoding::BASE64.encode(output.as_bytes()))
        }
        Response::Volume(volume) => resources::volume(xml, volume),
        Response::Volumes(page) => lists::page(xml, "volumeSet", page, resources::described_volume),
        Response::VolumeStatuses(page) => lists::page(xml, "volumeStatusSet", page, resources::volume_status),
        Response::Attachment(attachment) => resources::attachment(xml, attachment),
        Response::Modification(modification) => xml.node("volumeModification", |xml| resources::modification(xml, modification)),
        Response::Modifications(page) => lists::page(xml, "volumeModificationSet", page, resources::modification),
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
