//! Refuses an answer whose XML was cut: the SDK's reader takes the end of the text for the end of the list,
//! so half a page would look like a whole one.

use aws_sdk_ec2::config::interceptors::AfterDeserializationInterceptorContextRef;
use aws_sdk_ec2::config::{ConfigBag, Intercept, RuntimeComponents};
use aws_sdk_ec2::error::BoxError;

use crate::cloud::CloudError;
use crate::cloud::call::Call;

/// An answer that was well-formed but lacks what every such answer has.
pub(super) fn incomplete(call: Call, what: &str) -> CloudError {
    CloudError::in_doubt(call.as_str(), format!("the answer has no {what}"))
}

/// Turns a cut answer into an error.
#[derive(Debug)]
pub(super) struct WholeAnswer;

impl Intercept for WholeAnswer {
    fn name(&self) -> &'static str {
        "WholeAnswer"
    }

    fn read_after_deserialization(
        &self,
        context: &AfterDeserializationInterceptorContextRef<'_>,
        _components: &RuntimeComponents,
        _config: &mut ConfigBag,
    ) -> Result<(), BoxError> {
        let response = context.response();
        let body = response.body().bytes().unwrap_or_default();
        // An error need not be XML: a proxy's is not, and has no code, so it is in doubt anyway.
        let must_be_whole = response.status().is_success() || body.trim_ascii_start().starts_with(b"<");
        if must_be_whole && !is_whole(body) {
            Err("the answer was cut before its end".into())
        } else {
            Ok(())
        }
    }
}

/// True if the text ends with the end tag of its first element.
fn is_whole(body: &[u8]) -> bool {
    let Ok(text) = std::str::from_utf8(body) else { return false };
    let root =
        text.split('<').skip(1).find(|part| part.starts_with(|first: char| first.is_ascii_alphabetic()));
    let Some(name) =
        root.and_then(|part| part.split(|c: char| c == '>' || c == '/' || c.is_whitespace()).next())
    else {
        return false;
    };
    text.trim_end()
        .strip_suffix('>')
        .and_then(|text| text.strip_suffix(name))
        .is_some_and(|text| text.ends_with("</"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_answer_is_whole_if_its_first_element_is_closed_at_the_end() {
        let whole = r#"<?xml version="1.0" encoding="UTF-8"?>
            <DescribeInstancesResponse xmlns="http://ec2.amazonaws.com/doc/2016-11-15/"><reservationSet/></DescribeInstancesResponse>
            "#;
        assert!(is_whole(whole.as_bytes()));
        let end = whole.trim_end().len();
        for cut in 0..end {
            assert!(!is_whole(&whole.as_bytes()[..cut]), "cut after {cut}");
        }
    }

    #[test]
    fn what_is_no_xml_is_not_whole() {
        assert!(!is_whole(b""));
        assert!(!is_whole(b"bad gateway"));
        assert!(!is_whole(b"\xff\xfe"));
    }
}
