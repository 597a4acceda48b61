//! What a run has made and what of it is still there, by its tag.

use super::{
    answer::Checked,
    element::Element,
    target::{TAG, Target},
};

/// The resources of a run, each with its state.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Inventory {
    pub(super) instances: Vec<(String, String)>,
    pub(super) volumes: Vec<(String, String)>,
    pub(super) snapshots: Vec<(String, String)>,
}

impl Inventory {
    /// Lists what has the run's tag, page by page.
    pub(super) async fn of_run(ec2: &Target) -> Checked<Self> {
        let mut all = Self::default();
        for page in pages(ec2, "DescribeInstances", &[]).await? {
            for instance in page.items("reservationSet").flat_map(|one| one.items("instancesSet")) {
                all.instances.push(pair(instance, "instanceId", "instanceState/name"));
            }
        }
        for page in pages(ec2, "DescribeVolumes", &[]).await? {
            all.volumes.extend(page.items("volumeSet").map(|volume| pair(volume, "volumeId", "status")));
        }
        for page in pages(ec2, "DescribeSnapshots", &[("Owner.1", "self")]).await? {
            all.snapshots.extend(page.items("snapshotSet").map(|one| pair(one, "snapshotId", "status")));
        }
        all.instances.sort();
        all.volumes.sort();
        all.snapshots.sort();
        Ok(all)
    }

    /// What costs money, or would: all but the terminated instances.
    pub(super) fn left(&self) -> impl Iterator<Item = &(String, String)> {
        let live = self.instances.iter().filter(|(_, state)| state != "terminated");
        live.chain(&self.volumes).chain(&self.snapshots)
    }
}

fn pair(element: &Element, id: &str, state: &str) -> (String, String) {
    (element.text(id).to_owned(), element.text(state).to_owned())
}

async fn pages(ec2: &Target, action: &str, more: &[(&str, &str)]) -> Checked<Vec<Element>> {
    let mut pages = Vec::new();
    let tag = format!("tag:{TAG}");
    let mut params =
        vec![("Filter.1.Name", tag.as_str()), ("Filter.1.Value.1", &ec2.run), ("MaxResults", "500")];
    params.extend_from_slice(more);
    let mut next = String::new();
    loop {
        let mut page = params.clone();
        if !next.is_empty() {
            page.push(("NextToken", &next));
        }
        let answer = ec2.must(action, &page).await?;
        answer.text("nextToken").clone_into(&mut next);
        pages.push(answer);
        if next.is_empty() {
            return Ok(pages);
        }
    }
}
