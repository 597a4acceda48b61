//! An answer of EC2's Query protocol as a tree of elements.

use quick_xml::{Reader, errors::Error, escape::resolve_xml_entity, events::Event};

/// An element of an XML document.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Element {
    name: String,
    text: String,
    children: Vec<Self>,
}

impl Element {
    /// The outermost element of a document; an empty one if there is none.
    ///
    /// # Errors
    /// If the text is not XML.
    pub(super) fn read(document: &str) -> Result<Self, Error> {
        let mut reader = Reader::from_str(document);
        let mut open = vec![Self::default()];
        loop {
            match reader.read_event()? {
                Event::Start(tag) => open.push(Self::named(tag.local_name().as_ref())),
                Event::Empty(tag) => close(&mut open, Self::named(tag.local_name().as_ref())),
                Event::End(_) => {
                    if let Some(element) = open.pop() {
                        close(&mut open, element);
                    }
                }
                Event::Text(text) => add(&mut open, &text.xml10_content()),
                Event::CData(text) => add(&mut open, &text.xml10_content()),
                Event::GeneralRef(entity) => match entity.resolve_char_ref()? {
                    Some(character) => add(&mut open, character.encode_utf8(&mut [0; 4])),
                    None => add(&mut open, resolve_xml_entity(&entity).unwrap_or_default()),
                },
                Event::Comment(_) | Event::Decl(_) | Event::PI(_) | Event::DocType(_) => {}
                Event::Eof => break,
            }
        }
        Ok(open
            .into_iter()
            .next()
            .and_then(|document| document.children.into_iter().next())
            .unwrap_or_default())
    }

    fn named(name: &str) -> Self {
        Self { name: name.to_owned(), ..Self::default() }
    }

    /// The element at a path of names, such as `instanceState/name`.
    pub(super) fn at(&self, path: &str) -> Option<&Self> {
        path.split('/')
            .try_fold(self, |element, name| element.children.iter().find(|child| child.name == name))
    }

    /// The text of the element at a path; empty if there is none.
    pub(super) fn text(&self, path: &str) -> &str {
        self.at(path).map_or("", |element| element.text.trim())
    }

    /// The elements `item` of the list at a path.
    pub(super) fn items(&self, path: &str) -> impl Iterator<Item = &Self> {
        self.at(path).into_iter().flat_map(|list| list.children.iter().filter(|child| child.name == "item"))
    }
}

/// Puts an element that has ended into the one around it.
fn close(open: &mut [Element], element: Element) {
    if let Some(parent) = open.last_mut() {
        parent.children.push(element);
    }
}

fn add(open: &mut [Element], text: &str) {
    if let Some(element) = open.last_mut() {
        element.text.push_str(text);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_document_is_read_into_its_elements() {
        let document = r#"<?xml version="1.0"?>
            <Answer xmlns="urn:x"><set><item><id> a&amp;b&#33; </id></item><item/></set>
            <state><name>ok</name></state></Answer>"#;
        let root = Element::read(document).unwrap();
        assert_eq!(root.name, "Answer");
        assert_eq!(root.text("state/name"), "ok");
        assert_eq!(root.items("set").map(|item| item.text("id")).collect::<Vec<_>>(), ["a&b!", ""]);
        assert_eq!((root.text("none"), root.items("none").count()), ("", 0));
    }

    #[test]
    fn what_is_no_document_is_an_error_or_empty() {
        assert_eq!(Element::read("not found").unwrap(), Element::default());
        assert!(Element::read("<a></b>").is_err());
    }
}
