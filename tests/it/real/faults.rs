//! What goes wrong on a real machine: named in a condition, nothing lost, and well again without a hand on
//! any pod.

use ec2sim::{Effect, Fault, Outside};
use freehold::api::{Database, Volume};
use freehold_box::machines::machine::{CONTAINERD, KUBELET};
use freehold_box::writer::{Dialect, Writer};
use kube::api::{Patch, PatchParams};
use pretty_assertions::assert_eq;
use serde_json::json;

use crate::kit::env::Env as _;
use crate::kit::objects::Told as _;
use crate::kit::real::{LIMIT, RealEnv, on_real_machines, questdb};
use crate::kit::wait::{seen, within};

/// Runs a scenario in a test environment with real machines and a running operator.
fn with_operator<F: Future<Output = RealEnv>>(name: &str, scenario: impl FnOnce(RealEnv) -> F) {
    on_real_machines(name, |mut env| {
        env.env.start_operator();
        scenario(env)
    });
}

/// The database serves again, and every acknowledged row is there.
async fn keeps_its_rows(env: &RealEnv, writer: Writer) {
    env.serves("orders").await;
    writer.is_served(LIMIT).await.unwrap();
    writer.verify(LIMIT).await.unwrap().check().unwrap();
    writer.stop().await;
}

/// Waits until the condition has this status and reason; gives its message.
async fn until_condition(env: &RealEnv, kind: &str, status: &str, reason: &str) -> String {
    env.until_condition_within(LIMIT, "orders", kind, status, reason).await
}

#[test]
fn a_wrong_setting_is_told_in_the_engines_words_and_mended_by_an_edit_alone() {
    with_operator("wrong-setting", |env| async move {
        let writer = env.written(&env.postgresql(), Dialect::Postgresql).await;
        env.edit("orders", &json!({"config": {"shared_buffers": "plenty"}})).await;
        let message = until_condition(&env, "EngineReady", "False", "EngineFailing").await;
        assert!(message.contains("shared_buffers"), "{message}");
        env.edit("orders", &json!({"config": {"shared_buffers": "64MB"}})).await;
        keeps_its_rows(&env, writer).await;
        env
    });
}

#[test]
fn an_image_that_does_not_exist_is_told_and_left_for_the_one_that_served() {
    with_operator("no-image", |env| async move {
        let spec = env.postgresql();
        let writer = env.written(&spec, Dialect::Postgresql).await;
        let volumes = env.data_volumes();
        let version = spec["engine"]["version"].as_str().unwrap().to_owned();
        let major = version.split('.').next().unwrap().to_owned();
        env.edit("orders", &json!({"engine": {"version": format!("{major}.99")}})).await;
        // The kubelet can say so later than the operator waits for an image: then nothing else is shown
        // before.
        let message = until_condition(&env, "Ready", "False", "WentBack").await;
        assert!(message.contains(&format!("postgres:{major}.99")), "{message}");
        writer.is_served(LIMIT).await.unwrap();
        let before = env.run_of("orders").await;
        let after = env.data_volumes();
        assert_eq!(
            after.iter().map(|volume| &volume.id).collect::<Vec<_>>(),
            volumes.iter().map(|volume| &volume.id).collect::<Vec<_>>()
        );
        env.edit("orders", &json!({"engine": {"version": version}})).await;
        keeps_its_rows(&env, writer).await;
        assert_eq!(env.run_of("orders").await, before, "what served goes on serving");
        env
    });
}

#[test]
fn a_volume_that_stays_attaching_is_told_and_served_once_it_is_free() {
    with_operator("stuck-attach", |env| async move {
        let fault = env.ec2().add_fault(Fault::on("AttachVolume", Effect::Hangs).count(1));
        env.create("orders", &questdb()).await;
        let message = until_condition(&env, "EngineReady", "False", "AwaitingAttach").await;
        assert!(message.contains("is being attached"), "{message}");
        assert_eq!(env.data_volumes().len(), 1);
        env.ec2().clear_fault(&fault);
        // What a person does with such a volume.
        let stuck = env.data_volumes()[0].id.clone();
        env.ec2().outside(&Outside::Detach.to(stuck)).unwrap();
        env.serves("orders").await;
        env
    });
}

#[test]
fn a_full_disk_grows_by_itself_and_brings_the_database_back_without_a_restart() {
    with_operator("full-disk", |env| async move {
        let writer = env.written(&env.postgresql(), Dialect::Postgresql).await;
        let before = env.run_of("orders").await;
        // To the last block.
        let fill = "cd /var/lib/freehold; dd if=/dev/zero of=filling bs=1M; dd if=/dev/zero of=rest bs=512";
        let said = env.exec("orders", fill).unwrap_err();
        assert!(said.contains("No space left on device"), "{said}");
        let refused = within(LIMIT, "a row being refused", || async {
            let failure = writer.last_failure().unwrap_or_default();
            seen(failure.contains("No space left on device").then_some(()), || failure.clone())
        });
        refused.await;
        // From what the kubelet says, which the operator asks itself.
        let policy = json!({"maxSize": "4Gi", "stepPercent": 100});
        env.edit("orders", &json!({"storage": {"autoGrow": policy}})).await;
        let size = || async {
            let size = env.data_volumes()[0].shape.size;
            seen((size == 4).then_some(()), || format!("it has {size} GiB"))
        };
        within(LIMIT, "the volume having grown by itself", size).await;
        keeps_its_rows(&env, writer).await;
        assert_eq!(env.data_volumes()[0].shape.size, 4);
        assert_eq!(env.run_of("orders").await, before, "nothing was restarted");
        env
    });
}

#[test]
fn a_killed_containerd_costs_the_database_nothing() {
    with_operator("no-containerd", |env| async move {
        let writer = env.written(&questdb(), Dialect::Questdb).await;
        let before = env.run_of("orders").await;
        let machine = env.machine();
        let first = machine.service(CONTAINERD);
        assert!(machine.kill_service(CONTAINERD));
        within(LIMIT, "containerd running again", || async {
            let now = machine.service(CONTAINERD);
            seen((now.is_some() && now != first).then_some(()), || format!("{now:?}"))
        })
        .await;
        keeps_its_rows(&env, writer).await;
        assert_eq!(env.run_of("orders").await, before, "the engine was not restarted");
        env
    });
}

#[test]
fn a_kubelet_that_is_away_is_told_and_the_engine_goes_on_serving() {
    with_operator("no-kubelet", |env| async move {
        let writer = env.written(&questdb(), Dialect::Questdb).await;
        let before = env.run_of("orders").await;
        env.machine().stop_service(KUBELET).await;
        until_condition(&env, "NodeReady", "False", "NodeNotReady").await;
        writer.is_served(LIMIT).await.unwrap();
        env.machine().start_service(KUBELET);
        keeps_its_rows(&env, writer).await;
        assert_eq!(env.run_of("orders").await, before, "the engine was not restarted");
        env
    });
}

#[test]
fn an_engine_that_memory_ran_out_for_is_told_and_comes_back_with_its_rows() {
    with_operator("no-memory", |env| async move {
        // The engine requests little. One that requests most of the machine, as it does by default, is ended
        // by the kernel before the process that fills the memory.
        let mut spec = questdb();
        spec["resources"] = json!({"requests": {"memory": "256Mi"}});
        let writer = env.written(&spec, Dialect::Questdb).await;
        let (pod, restarts) = env.run_of("orders").await;
        // Holds the whole of an endless line, on the machine and not in the pod, which the kernel ends first.
        let machine = env.machine();
        machine.limit_memory(1536).unwrap();
        let start = || machine.enter("tail").arg("/dev/zero").spawn().unwrap();
        let mut hog = start();
        let message = within(LIMIT, "the condition with what ended the engine", || {
            // With the engine gone the kernel may end this one, too, and the engine is back within a moment.
            if hog.try_wait().unwrap().is_some() {
                hog = start();
            }
            async {
                let database =
                    env.api::<Database>().get("orders").await.map_err(|error| error.to_string())?;
                let condition = database.condition("EngineReady");
                seen(condition.2.contains("OOMKilled").then(|| condition.2.clone()), || {
                    format!("{condition:?}")
                })
            }
        })
        .await;
        assert!(message.contains("137"), "{message}");
        let _ = hog.kill();
        hog.wait().unwrap();
        keeps_its_rows(&env, writer).await;
        let after = env.run_of("orders").await;
        assert_eq!(after.0, pod, "the pod stays");
        assert!(after.1 > restarts, "its container was started again");
        env
    });
}

#[test]
fn a_record_of_another_zone_does_not_lead_a_machine_away_from_its_disk() {
    with_operator("other-zone", |env| async move {
        let writer = env.written(&questdb(), Dialect::Questdb).await;
        let zone = env.list::<Volume>().await[0].spec.zone.clone();
        env.edit("orders", &json!({"running": false})).await;
        until_condition(&env, "Ready", "False", "Paused").await;
        within(LIMIT, "the machine being gone", || async {
            let left = env.live_instances();
            seen(left.is_empty().then_some(()), || format!("{left:?}"))
        })
        .await;
        let other = if zone == "us-east-1a" { "us-east-1b" } else { "us-east-1a" };
        let lie = Patch::Merge(json!({"status": {"zone": other}}));
        env.api::<Database>().patch_status("orders", &PatchParams::default(), &lie).await.unwrap();
        env.edit("orders", &json!({"running": true})).await;
        keeps_its_rows(&env, writer).await;
        assert_eq!(env.live_instances()[0].zone, zone);
        env
    });
}
