//! The NodeConfigs in a MIME multipart text.
//!
//! nodeadm reads such a text by Go's `mime/multipart`, which wants the last boundary; `mail-parser` does not.

use mail_parser::{MessageParser, MimeHeaders};

/// The parts of the type `application/node.eks.aws`, in their order; one that is compressed is left out.
pub(super) fn node_configs(text: &str) -> Result<Vec<String>, String> {
    let message = MessageParser::new().parse(text).ok_or("it has no MIME headers")?;
    let kind = message.root_part().content_type().ok_or("it has no Content-Type")?;
    if !kind.ctype().eq_ignore_ascii_case("multipart") {
        return Err("its Content-Type is not multipart".to_owned());
    }
    let boundary = kind.attribute("boundary").ok_or("its Content-Type has no boundary")?;
    let mut configs = Vec::new();
    let mut is_for_nodeadm = false;
    for part in &message.parts {
        let is_config = part.content_type().is_some_and(|kind| {
            let subtype = kind.subtype().unwrap_or_default();
            kind.ctype().eq_ignore_ascii_case("application") && subtype.eq_ignore_ascii_case("node.eks.aws")
        });
        if is_config {
            is_for_nodeadm = true;
            configs.extend(std::str::from_utf8(part.contents()).ok().map(str::to_owned));
        }
    }
    let last = format!("--{boundary}--");
    if is_for_nodeadm && !text.lines().any(|line| line.trim_end() == last) {
        return Err(format!("its last line, {last}, is absent"));
    }
    Ok(configs)
}
