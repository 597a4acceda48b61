//! The rows of a step: taken again, read back, and compared with those that were written.

use std::time::{Duration, Instant};

use super::common::Failure;
use super::report::{Rows, Step, tenths};
use super::reporter::{StepReporter, wait_with_progress};
use crate::writer::{Target, Writer};

/// How long the database may take to accept the next row, and to give all rows back, once it is Ready.
const SERVED_LIMIT: Duration = Duration::from_secs(180);

/// Waits until the next row is acknowledged.
pub async fn served(writer: &Writer) -> Result<(), Failure> {
    Ok(wait_with_progress("the next row to be acknowledged", SERVED_LIMIT, writer.is_served(SERVED_LIMIT))
        .await??)
}

/// Ends a step with its rows read back and checked.
pub async fn counted(writer: &Writer, reporter: StepReporter) -> Result<Step, Failure> {
    served(writer).await?;
    let outage = tenths(writer.observed().outage.map(|gap| gap.length).unwrap_or_default());
    let started = Instant::now();
    let tally =
        wait_with_progress("all rows to be read back", SERVED_LIMIT, writer.verify(SERVED_LIMIT)).await??;
    tally.check().map_err(|untrue| format!("the rows read back differ from the rows written: {untrue}"))?;
    let rows = Rows {
        outage_seconds: Some(outage),
        sent: tally.sent.len(),
        acknowledged: tally.acknowledged.len(),
        found: tally.found.len(),
    };
    reporter.print(&format!(
        "rows: {} sent, {} acknowledged, {} found, no duplicates; longest outage {outage:.1} s (read back in \
            {:.1} s)",
        rows.sent,
        rows.acknowledged,
        rows.found,
        started.elapsed().as_secs_f64(),
    ));
    let step = reporter.end().await?;
    Ok(Step { rows: Some(rows), ..step })
}

/// Ends the writer and reads everything back for the last time.
pub async fn stop(writer: Writer, target: Target) -> Result<Rows, Failure> {
    let written = writer.stop().await;
    let tally =
        wait_with_progress("all rows to be read back", SERVED_LIMIT, written.verify(&target, SERVED_LIMIT))
            .await??;
    tally.check().map_err(|untrue| format!("the rows read back differ from the rows written: {untrue}"))?;
    Ok(Rows {
        outage_seconds: None,
        sent: tally.sent.len(),
        acknowledged: tally.acknowledged.len(),
        found: tally.found.len(),
    })
}
