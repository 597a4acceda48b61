//! The sentences for what the next start of an adopted database's pod changes, and for a template that it
//! does not start with. Pure.

use jiff::Timestamp;

use crate::controller::database::pod::EngineWait;

/// The pod goes on as it is.
pub fn at_next_start(pod: &str, fields: &[String]) -> String {
    format!("at its next start pod {pod} changes: {}; nothing restarts for it", fields.join(", "))
}

/// The pod is being replaced.
pub fn restarts(pod: &str, fields: &[String]) -> String {
    if fields.is_empty() {
        return format!("pod {pod} is being replaced for a changed spec");
    }
    format!("pod {pod} is being replaced for a changed spec, and changes: {}", fields.join(", "))
}

/// Nothing changes.
pub fn same(pod: &str) -> String {
    format!("pod {pod} was made from the newest template")
}

/// The database went back.
pub fn went_back(at: Timestamp, message: &str) -> String {
    format!(
        "the pod did not start as the spec requests, so the database went back at {at} to what it ran as \
         before: {message}. The same spec is not tried again: change spec.engine or spec.resources; or set \
         them back to what they were and, once the cause is mended, request the same anew"
    )
}

/// The database went back to the engine that it served as.
pub fn engine_went_back(at: Timestamp, message: &str) -> String {
    format!(
        "the image of spec.engine could not be started, so the database went back at {at} to the engine \
         that it served as: {message}. The same spec.engine is not tried again: correct it; or set it back \
         to what it was and, once that is Ready and the image can be pulled, request the same again"
    )
}

/// The image cannot go back.
pub fn not_going_back(started: &str, before: &str, wait: &EngineWait) -> String {
    format!(
        "{}. The database does not go back to image {before} by itself, since an engine of image {started} \
         was started and may have changed the data. Read its log; set spec.engine back only if the earlier \
         version reads that data, or restore a snapshot",
        wait.message()
    )
}
