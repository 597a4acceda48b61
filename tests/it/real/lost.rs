//! Machines that are lost in the ways of the field: each is declared lost, fenced and replaced, and a client
//! that writes all the time is served again with every row.

use std::time::Duration;

use ec2sim::{Effect, Fault, InstanceState, Outside};
use freehold_box::machines::machine::KUBELET;
use freehold_box::writer::{Dialect, Writer};
use k8s_openapi::api::core::v1::Pod;
use kube::ResourceExt as _;
use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;

use crate::kit::env::Env as _;
use crate::kit::real::{LIMIT, RealEnv, on_real_machines_with, questdb};
use crate::kit::wait::{seen, within};

/// A machine looks lost 25 s after its kubelet has fallen silent, and the next one may be lost at once.
const SETTINGS: [(&str, u32); 3] =
    [("kubelet-silence-timeout", 100), ("loss-grace-period", 150), ("relaunch-backoff", 10)];

/// How a machine is lost.
#[derive(Clone, Copy, Debug)]
enum Loss {
    /// Its kubelet hangs (SIGSTOP); the engine goes on serving.
    Kubelet,
    /// Its network is cut; the engine goes on, and nothing reaches it.
    Network,
    /// Its power fails, and EC2 does not know: it shows the instance as running.
    Power,
    /// It hangs, and the stop that is to fence it never ends.
    EndlessStop,
}

/// Where the database's pod runs.
struct Place {
    pod: String,
    machine: String,
    instance: String,
}

async fn place(env: &RealEnv) -> Place {
    let pod = env.pod("orders").await;
    let machine = pod.spec.as_ref().and_then(|spec| spec.node_name.clone()).unwrap();
    let instance = env.live_instances().into_iter().find(|it| it.private_dns == machine).unwrap().id;
    Place { pod: pod.uid().unwrap(), machine, instance }
}

async fn lose(env: &RealEnv, from: &Place, loss: Loss) {
    let machine = env.site.machines().unwrap().get(&from.instance).unwrap();
    match loss {
        Loss::Kubelet => {
            let kubelet = machine.service(KUBELET).unwrap();
            kill(Pid::from_raw(i32::try_from(kubelet).unwrap()), Signal::SIGSTOP).unwrap();
        }
        Loss::Network => machine.cut_network().await.unwrap(),
        Loss::Power => assert!(env.site.machines().unwrap().cut_power(&from.instance).await),
        Loss::EndlessStop => {
            let resource = Some(from.instance.clone());
            let action = Some("StopInstances".to_owned());
            env.ec2().add_fault(Fault { action, resource, ..Fault::always(Effect::Hangs) });
            env.ec2().outside(&Outside::Impair.to(&from.instance)).unwrap();
        }
    }
}

/// Loses the machine, and waits until the client is served on another one; how long the client was not.
async fn outage(env: &RealEnv, writer: &Writer, loss: Loss) -> Duration {
    let from = place(env).await;
    let _ = writer.observed();
    lose(env, &from, loss).await;
    within(LIMIT, &format!("another pod on another machine after {loss:?}"), || async {
        let pod = env.api::<Pod>().get_opt("orders-0").await.map_err(|error| error.to_string())?;
        let machine = pod.as_ref().and_then(|pod| pod.spec.as_ref()?.node_name.clone());
        let is_another = pod.as_ref().is_some_and(|pod| pod.uid().as_ref() != Some(&from.pod));
        seen((is_another && machine.as_ref().is_some_and(|it| *it != from.machine)).then_some(()), || {
            format!("{machine:?}, another pod: {is_another}")
        })
    })
    .await;
    env.serves("orders").await;
    writer.is_served(LIMIT).await.unwrap();
    let state = env.ec2().instance(&from.instance).map(|it| it.state);
    let is_fenced = !matches!(state, Some(InstanceState::Pending | InstanceState::Running));
    assert!(is_fenced, "the volume moved from a machine that EC2 shows as {state:?}");
    writer.observed().outage.unwrap().length
}

#[test]
fn a_machine_that_is_lost_in_any_way_of_the_field_is_replaced_and_no_row_is_lost() {
    on_real_machines_with("lost-machines", &SETTINGS, |mut env| async move {
        env.env.start_operator();
        let writer = env.written(&questdb(), Dialect::Questdb).await;
        for loss in [Loss::Kubelet, Loss::Network, Loss::Power, Loss::EndlessStop] {
            let outage = outage(&env, &writer, loss).await;
            println!("{loss:?}: the client was not served for {:.1} s", outage.as_secs_f64());
        }
        writer.verify(LIMIT).await.unwrap().check().unwrap();
        writer.stop().await;
        env
    });
}
