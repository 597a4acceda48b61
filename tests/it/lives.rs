//! Whole lives of databases in one process and in virtual time: the operator as it is shipped, on the API
//! server in memory and EC2's model, with everyone who acts beside it; one seed decides all that may differ.

mod chaos;
mod house;
mod person;
mod story;

use std::time::Duration;

use serde_json::json;

use chaos::Lies;
use house::{House, run};

#[test]
fn a_database_lives() {
    run(async {
        let mut house = House::build(1, Lies::none()).await;
        house.start();
        house.create(&json!({})).await;
        house.until_ready(Duration::from_secs(1800)).await;
        house.patch(&json!({"storage": {"size": "150Gi"}})).await;
        house.until_ready(Duration::from_secs(1800)).await;
        house.patch(&json!({"instanceTypes": ["r7i.xlarge"]})).await;
        house.until_ready(Duration::from_secs(3600)).await;
        house.delete().await;
        house.until_gone(Duration::from_secs(3600)).await;
        println!("{}", house.story());
    });
}
