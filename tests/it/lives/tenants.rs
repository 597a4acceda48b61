//! What the tenants of one account share: EC2's rate of launches. In virtual time, in which a slow host
//! changes no order.

use ec2sim::{JournalEntry, Outside};
use freehold_rig::Verb;
use jiff::Timestamp;
use serde_json::json;

use super::house::House;
use super::lies::Lies;
use super::life::CALM;
use crate::kit::objects;

/// How many databases one namespace creates at once.
const BURST: usize = 30;

/// How many of its launches may come between the Node of another namespace and that Node's launch.
const FEW: usize = 3;

/// Many databases of one namespace wait for launches, of which there is one in 50 s, a hundredth of EC2's
/// rate: a repair and a creation in other namespaces do not wait for all of them.
pub async fn burst() {
    let mut house = House::build(1, Lies::none()).await;
    house.start_with(1, &["--ec2-share", "0.01"]);
    for namespace in ["broken", "noisy", "quiet"] {
        house.namespace(namespace).await;
    }
    house.create_in("broken", "orders", &json!({})).await;
    house.until("the first is ready", CALM, |it| it.is_ready_in("broken", "orders")).await;
    let old = house.live()[0].id.clone();
    for number in 1..=BURST {
        house.create_in("noisy", &format!("db-{number}"), &json!({})).await;
    }
    let has_begun = |it: &House| it.launches("noisy").len() >= 2 && it.nodes_of("noisy") == BURST;
    house.until("there are the first launches of many", CALM, has_begun).await;

    house.ec2.outside(&Outside::Terminate.to(&old)).unwrap();
    house.create_in("quiet", "orders", &json!({})).await;
    let are_launched = |it: &House| it.launches("broken").len() >= 2 && !it.launches("quiet").is_empty();
    house.until("the others are launched", CALM, are_launched).await;
    let waiting = BURST - house.launches("noisy").len();
    assert!(waiting > FEW, "the burst was over before it could hold up anything: {waiting} wait");
    for namespace in ["broken", "quiet"] {
        let (asked, made) = (house.node_created(namespace), house.launches(namespace).pop().unwrap().time);
        let is_between = |it: &&JournalEntry| asked < it.time && it.time < made;
        let before = house.launches("noisy").iter().filter(is_between).count();
        assert!(before <= FEW, "{before} launches of another tenant before one of {namespace}");
    }
    for namespace in ["broken", "quiet"] {
        house.until("the others are ready", CALM, |it| it.is_ready_in(namespace, "orders")).await;
    }
    assert!(house.live().iter().all(|it| it.id != old), "{old} was terminated");
    house.judge();
}

impl House {
    /// The operator's launches for this namespace.
    fn launches(&self, namespace: &str) -> Vec<JournalEntry> {
        objects::launches_for(namespace, self.ec2.journal())
    }

    fn nodes_of(&self, namespace: &str) -> usize {
        let nodes = self.server.objects("nodes.freehold.dev");
        nodes.iter().filter(|it| it["metadata"]["namespace"] == namespace).count()
    }

    /// When the newest Node of this namespace was created.
    fn node_created(&self, namespace: &str) -> Timestamp {
        let is_of = |it: &&freehold_rig::Write| {
            it.verb == Verb::Create && it.resource == "nodes.freehold.dev" && it.namespace == namespace
        };
        let writes = self.server.journal();
        writes.iter().rfind(is_of).expect("a Node was created").at
    }
}
