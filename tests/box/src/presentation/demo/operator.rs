//! The demo's operator: a process of this host, or a pod that helm installed.

use std::path::Path;

use kube::Client;

use super::cluster_objects::{example_class, install, node_class};
use super::common::{Failure, SPEED};
use super::operator_pod::OperatorPod;
use super::operator_process::OperatorProcess;
use crate::account::node_kind::NodeKind;
use crate::base::cache::Cache;
use crate::presentation::daemon::Record;

/// A running operator; it goes on when this is dropped.
#[derive(Debug)]
pub enum Operator {
    /// On virtual machines no pod runs.
    Process(OperatorProcess),
    /// On real machines.
    Pod(OperatorPod),
}

impl Operator {
    /// Installs it with its definitions and the NodeClass of the box, and waits until it is ready.
    pub async fn start(
        cache: &Cache,
        binary: &Path,
        record: &Record,
        client: &Client,
    ) -> Result<Self, Failure> {
        match record.nodes {
            NodeKind::Virtual => {
                install(client).await?;
                Ok(Self::Process(OperatorProcess::start(cache, binary, record, SPEED).await?))
            }
            NodeKind::Real => {
                let class = example_class()?;
                let pod = OperatorPod::start(cache, binary, record, client, &class).await?;
                node_class(client, &class).await?;
                Ok(Self::Pod(pod))
            }
        }
    }

    /// Where it runs, and where its log is.
    pub async fn place(&self) -> Result<String, Failure> {
        match self {
            Self::Process(operator) => {
                Ok(format!("process {}, its log is {}", operator.id(), operator.log().display()))
            }
            Self::Pod(pod) => pod.place().await,
        }
    }

    /// Its process on this host.
    pub async fn process(&self) -> Result<u32, Failure> {
        match self {
            Self::Process(operator) => Ok(operator.id()),
            Self::Pod(pod) => pod.process().await,
        }
    }

    /// SIGKILL.
    pub async fn kill(&mut self) -> Result<(), Failure> {
        match self {
            Self::Process(operator) => operator.kill().await,
            Self::Pod(pod) => pod.kill().await,
        }
    }

    /// Starts it again after it was killed, or waits until its kubelet has.
    pub async fn start_again(
        &mut self,
        cache: &Cache,
        binary: &Path,
        record: &Record,
    ) -> Result<(), Failure> {
        match self {
            Self::Process(operator) => {
                *operator = OperatorProcess::start(cache, binary, record, SPEED).await?;
            }
            Self::Pod(pod) => pod.back(cache).await?,
        }
        Ok(())
    }

    /// The end of its log.
    pub async fn tail(&self) -> String {
        match self {
            Self::Process(operator) => operator.tail(),
            Self::Pod(pod) => pod.tail().await,
        }
    }

    /// Stops it in good order.
    pub async fn stop(self) -> Result<(), Failure> {
        match self {
            Self::Process(mut operator) => operator.stop().await,
            Self::Pod(pod) => pod.stop().await,
        }
    }
}
