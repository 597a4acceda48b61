//! Writes XML.

use std::io;

use jiff::Timestamp;
use quick_xml::{
    Writer,
    events::{BytesEnd, BytesStart, BytesText, Event},
};

/// An XML document in the making.
pub(super) struct Xml {
    writer: Writer<Vec<u8>>,
    /// The account that owns everything.
    pub(super) account: String,
}

/// What writing a part comes to.
pub(super) type Written = io::Result<()>;

impl Xml {
    /// An empty document.
    pub(super) fn new(account: &str) -> Self {
        Self { writer: Writer::new(Vec::new()), account: account.to_owned() }
    }

    /// What was written.
    pub(super) fn into_bytes(self) -> Vec<u8> {
        self.writer.into_inner()
    }

    /// The outermost element, in a namespace.
    pub(super) fn root(
        &mut self,
        name: &str,
        namespace: &str,
        inner: impl FnOnce(&mut Self) -> Written,
    ) -> Written {
        let begin = BytesStart::new(name).with_attributes([("xmlns", namespace)]);
        self.writer.write_event(Event::Start(begin))?;
        inner(self)?;
        self.writer.write_event(Event::End(BytesEnd::new(name)))
    }

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
