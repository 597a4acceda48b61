//! Many databases that Freehold never made, adopted by one command and by each script of `examples/adoption`
//! while both operator and adopter are killed: nothing is launched, made or moved, and every pod goes on.
//!
//! `FREEHOLD_ADOPT_DATABASES` is how many, `FREEHOLD_ADOPT_KILLS` how often something is killed, and
//! `FREEHOLD_ADOPT_SEED` repeats the kills of an earlier run.

mod random;
mod rows;

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use ec2sim::{Fate, JournalEntry};
use freehold::api::Database;
use freehold_box::base::process::{Launch, Process};
use freehold_box::legacy::{Account, Disk, FileSystem, Legacy, Order};
use freehold_box::writer::Dialect;
use futures::{StreamExt as _, stream};
use k8s_openapi::api::core::v1::{PersistentVolume, PersistentVolumeClaim, Pod};
use kube::api::ListParams;
use kube::{Api, ResourceExt as _};
use pretty_assertions::assert_eq;
use serde_json::{Value, json};

use crate::kit::adopter::{PERSON, environment};
use crate::kit::aws;
use crate::kit::env::Env as _;
use crate::kit::objects::Told as _;
use crate::kit::permits::Share;
use crate::kit::process::binary;
use crate::kit::test_env::{OPERATOR, Options, TestEnv, run};
use crate::kit::wait::{seen, until};
use random::{Random, number};

/// How many databases there are, unless the environment says otherwise.
const DATABASES: usize = 12;

/// How often the adopter or the operator is killed, unless the environment says otherwise.
const KILLS: usize = 6;

/// The operator writes more often for each database, so that the kills come before the end.
const WRITES_EACH: usize = 16;

/// How long everything may take, for each database, and beside that.
const LIMIT_EACH: Duration = Duration::from_secs(20);
const LIMIT: Duration = Duration::from_mins(20);

/// Databases that a provisioner made, and what they were found as.
struct Scene {
    env: TestEnv,
    legacy: Vec<Legacy>,
    /// Each pod with its UID and the restarts of its containers.
    pods: BTreeMap<String, (String, i32)>,
    mark: u64,
    folder: tempfile::TempDir,
    runs: usize,
}

impl Scene {
    async fn of(name: &str) -> Self {
        // As a hundred databases of Freehold's own have it (fleet.rs).
        let settings = BTreeMap::from([("registration-timeout", 7200), ("loss-grace-period", 7200)]);
        let options = Options { scale: 20, settings, share: Share::Half, ..Options::default() };
        let env = TestEnv::build(name, options).await;
        let count = number("FREEHOLD_ADOPT_DATABASES", u64::try_from(DATABASES).unwrap());
        let names: Vec<String> = (0..count).map(|index| format!("{name}-{index:03}")).collect();
        // Again while EC2 asks to slow down, which it does before anything is made.
        let made = stream::iter(&names).map(async |name| {
            let (namespace, file_system) = (env.name.as_str(), FileSystem::Ext4);
            let order = Order { engine: Dialect::Questdb, namespace, name, file_system, disk: Disk::Claimed };
            until(&format!("the legacy database {name}"), || async {
                Legacy::create(&env.client, &Account::of(&env.site), order)
                    .await
                    .map_err(|error| format!("{error:?}"))
            })
            .await
        });
        let legacy: Vec<Legacy> = made.buffered(8).collect().await;
        let limit = LIMIT + LIMIT_EACH * u32::try_from(legacy.len()).unwrap();
        for database in &legacy {
            database.serves(limit).await.unwrap();
        }
        let (pods, mark) = (pods(&env).await, env.mark());
        Self { env, legacy, pods, mark, folder: tempfile::tempdir().unwrap(), runs: 0 }
    }

    /// `freehold adopt` for all of them, with these arguments more.
    fn command(&self, arguments: &[&str]) -> (PathBuf, Vec<String>) {
        let (namespace, class) = (&self.env.name, &self.env.name);
        let fixed = ["adopt", "--selector", "example.com/database", "--namespace", namespace];
        let fixed = fixed.into_iter().chain(["--node-class", class, "--cluster-id", class]);
        let arguments = fixed.chain(arguments.iter().copied()).map(str::to_owned).collect();
        (binary(self.env.control_plane.folder()), arguments)
    }

    fn file(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    /// Starts an adopter; the output of all of them goes to one file.
    async fn start(&mut self, (program, arguments): &(PathBuf, Vec<String>)) -> Process {
        self.runs += 1;
        let kubectl = self.env.control_plane.kubectl();
        let path = [kubectl.parent().unwrap(), aws::program().await.parent().unwrap()];
        let path = path.map(|folder| folder.display().to_string()).join(":");
        let mut args = vec![
            format!("PATH={path}:{}", std::env::var("PATH").unwrap()),
            format!("AWS_DEFAULT_REGION={}", self.env.site.region()),
            format!("FREEHOLD_CLUSTER_ID={}", self.env.name),
        ];
        let environment = environment(&self.env, &self.env.site.endpoint());
        args.extend(environment.iter().map(|(key, value)| format!("{key}={value}")));
        args.push(program.display().to_string());
        args.extend(arguments.iter().cloned());
        let folder = self.folder.path();
        Process::start(Launch { name: "adopter", program: Path::new("/usr/bin/env"), args, folder }).unwrap()
    }

    /// Lets an adopter run to its end; its exit code and what it printed.
    async fn done(&mut self, command: &(PathBuf, Vec<String>)) -> (Option<i32>, String) {
        let _ = std::fs::remove_file(self.file("adopter.log"));
        let mut adopter = self.start(command).await;
        let code = self.ended(&mut adopter).await;
        (code, std::fs::read_to_string(self.file("adopter.log")).unwrap())
    }

    async fn ended(&self, adopter: &mut Process) -> Option<i32> {
        let (started, limit) =
            (Instant::now(), LIMIT + LIMIT_EACH * u32::try_from(self.legacy.len()).unwrap());
        loop {
            if let Some(status) = adopter.ended() {
                return status.code();
            }
            assert!(started.elapsed() < limit, "the adopter does not end: {}", adopter.log_tail());
            tokio::time::sleep(Duration::from_millis(100)).await;
        }
    }

    /// Adopts all by this command, while it and the operator are killed so often, each time after some
    /// writes of the operator; what is killed is started again.
    async fn adopt_while_killed(&mut self, command: &(PathBuf, Vec<String>), kills: usize) {
        let seed = number("FREEHOLD_ADOPT_SEED", u64::from(std::process::id()));
        eprintln!("{}: FREEHOLD_ADOPT_SEED={seed}", self.env.name);
        let (mut random, started) = (Random(seed), Instant::now());
        let (mut left, mut operators, mut mark) = (kills, 0, self.env.tap.mark());
        let most = (self.legacy.len() * WRITES_EACH / kills.max(1)).max(1);
        let mut gap = 1 + random.below(most);
        self.env.start_operator();
        let mut adopter = self.start(command).await;
        while left > 0 && adopter.ended().is_none() {
            if self.env.tap.writes_since(mark).len() < gap {
                tokio::time::sleep(Duration::from_millis(50)).await;
                continue;
            }
            if random.below(2) == 0 {
                self.env.kill_operator();
                self.env.start_operator();
                operators += 1;
            } else {
                adopter.kill();
                adopter = self.start(command).await;
            }
            (left, mark, gap) = (left - 1, self.env.tap.mark(), 1 + random.below(most));
        }
        let code = self.ended(&mut adopter).await;
        assert_eq!(code, Some(0), "{}", adopter.log_tail());
        eprintln!(
            "{}: {} databases adopted in {} s; seed {seed}: the operator killed {operators} times, the \
                adopter {} times",
            self.env.name,
            self.legacy.len(),
            started.elapsed().as_secs(),
            kills - left - operators
        );
    }

    /// What was done in EC2 since the databases were found, that is more than reading, by action and caller.
    fn written(&self) -> BTreeMap<(String, String), usize> {
        let mut counts = BTreeMap::new();
        let carried_out =
            |entry: &JournalEntry| matches!(entry.fate, Fate::Committed | Fate::Lost) && !entry.dry_run;
        for entry in self.env.ec2().journal_since(self.mark).into_iter().filter(carried_out) {
            *counts.entry((entry.action, entry.caller)).or_default() += 1;
        }
        counts
    }

    /// Every database is Ready, also one whose Node was just changed, its pod is the one that it was, and
    /// nothing was done in EC2 that costs it anything; then the end.
    async fn close(self) {
        let written = self.written();
        eprintln!("{}: {written:?}", self.env.name);
        let allowed = ["CreateSnapshot", "CreateTags", "DeleteTags"];
        let others: Vec<_> =
            written.keys().filter(|(action, _)| !allowed.contains(&action.as_str())).collect();
        assert_eq!(others, Vec::<&(String, String)>::new());
        let count = |action: &str, caller: &str| {
            written.get(&(action.to_owned(), caller.to_owned())).copied().unwrap_or_default()
        };
        let all = self.legacy.len();
        assert_eq!(count("CreateSnapshot", OPERATOR), 0);
        // Of an adopter that was killed, a call may be carried out after the next one has looked.
        let snapshots = count("CreateSnapshot", PERSON);
        assert!((all..all + self.runs).contains(&snapshots), "{snapshots}");
        let databases = until("every database being Ready", || async {
            let databases = self.env.list::<Database>().await;
            let late = databases.iter().find(|it| it.condition("Ready").0 != "True");
            let late = late.map(|it| (it.name_any(), it.condition("Ready")));
            seen(late.is_none().then_some(databases), || format!("{late:?}"))
        })
        .await;
        assert_eq!(databases.len(), all);
        assert_eq!(pods(&self.env).await, self.pods);
        self.env.close().await;
    }

    /// What a provisioner knows of each database.
    async fn inventory(&self) -> Vec<Value> {
        let records = Api::<PersistentVolume>::all(self.env.client.clone());
        let records = records.list(&ListParams::default()).await.unwrap();
        let claims = self.env.list::<PersistentVolumeClaim>().await;
        let volume = |legacy: &Legacy| {
            let claim = claims.iter().find(|claim| claim.name_any() == legacy.claim()).unwrap();
            let name = claim.spec.as_ref().unwrap().volume_name.clone().unwrap();
            let record = records.iter().find(|record| record.name_any() == name).unwrap();
            record.spec.as_ref().unwrap().csi.as_ref().unwrap().volume_handle.clone()
        };
        let row = |legacy: &Legacy| {
            json!({
                "namespace": legacy.namespace, "statefulset": legacy.name, "claim": legacy.claim(),
                "volume_id": volume(legacy), "instance_id": legacy.instance, "engine": "questdb",
                "version": "8.2.0", "instance_types": "r7i.large m7i.large", "service": legacy.name,
                "secret": format!("{}-credentials", legacy.name),
            })
        };
        self.legacy.iter().map(row).collect()
    }

    /// A script of the examples with this inventory.
    fn script(&self, name: &str, inventory: &Path, arguments: &[&str]) -> (PathBuf, Vec<String>) {
        let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("examples/adoption").join(name);
        let inventory = inventory.display().to_string();
        let fixed = ["--node-class", &self.env.name];
        let arguments = fixed.iter().chain(arguments).copied().chain([inventory.as_str()]);
        (script, arguments.map(str::to_owned).collect())
    }
}

/// Each pod with its UID and the restarts of its containers.
async fn pods(env: &TestEnv) -> BTreeMap<String, (String, i32)> {
    let state = |pod: Pod| {
        let statuses = pod.status.iter().flat_map(|status| status.container_statuses.iter().flatten());
        (pod.name_any(), (pod.uid().unwrap(), statuses.map(|it| it.restart_count).sum()))
    };
    env.list::<Pod>().await.into_iter().map(state).collect()
}

/// How often something is killed.
fn kills() -> usize {
    usize::try_from(number("FREEHOLD_ADOPT_KILLS", u64::try_from(KILLS).unwrap())).unwrap()
}

#[test]
fn many_databases_are_adopted_by_one_command_however_often_it_and_the_operator_are_killed() {
    run(async {
        let mut scene = Scene::of("many").await;
        let all = scene.legacy.len();

        // The look at all of them reads EC2 once for all, and changes nothing.
        let (code, printed) = scene.done(&scene.command(&[])).await;
        assert_eq!(code, Some(0), "{printed}");
        assert!(
            printed.contains(&format!("{all} databases: {all} adoptable. Nothing was changed")),
            "{printed}"
        );
        let reads: Vec<String> = scene
            .env
            .ec2()
            .journal_since(scene.mark)
            .into_iter()
            .map(|it| (it.caller, it.action))
            .filter(|(caller, _)| caller == PERSON)
            .map(|(_, action)| action)
            .collect();
        let lists = ["DescribeInstances", "DescribeVolumes", "DescribeVolumesModifications"];
        let expected: Vec<&str> = lists.into_iter().flat_map(|it| vec![it; all.div_ceil(200)]).collect();
        assert_eq!(reads, expected);

        // Without an operator nothing becomes Ready: the first failure is the last that is begun.
        let report = scene.file("paused.md").display().to_string();
        let paused = ["--write", "--timeout", "0", "--concurrency", "1", "--pause-on-failure"];
        let (code, printed) =
            scene.done(&scene.command(&[&paused[..], &["--report", &report]].concat())).await;
        assert_eq!(code, Some(1), "{printed}");
        assert!(printed.contains(&format!("{all} databases: {} adoptable, 1 failed", all - 1)), "{printed}");
        assert_eq!(scene.env.list::<Database>().await.len(), 1);
        let report = std::fs::read_to_string(report).unwrap();
        assert!(report.contains("FAILED: Database many-000 is not Ready after 0 s"), "{report}");

        stopped(&mut scene).await;

        let report = scene.file("report.json").display().to_string();
        let command = scene.command(&["--write", "--concurrency", "8", "--report", &report]);
        scene.adopt_while_killed(&command, kills()).await;
        let report: Value = serde_json::from_slice(&std::fs::read(&report).unwrap()).unwrap();
        let entries = report["databases"].as_array().unwrap();
        for entry in entries {
            assert_eq!(entry["podUIDBefore"], entry["podUIDAfter"], "{entry:#}");
        }
        assert_eq!(entries.len(), all);

        let (code, printed) = scene.done(&scene.command(&["--write"])).await;
        assert_eq!(code, Some(0), "{printed}");
        assert!(printed.contains(&format!("{all} databases: {all} already adopted.")), "{printed}");
        scene.close().await;
    });
}

/// An adopter that is asked to end finishes the database that is under way, and begins no other.
async fn stopped(scene: &mut Scene) {
    scene.env.start_operator();
    let report = scene.file("stopped.json").display().to_string();
    let command = scene.command(&["--write", "--concurrency", "1", "--report", &report]);
    let mut adopter = scene.start(&command).await;
    until("a second Database", || async {
        let begun = scene.env.list::<Database>().await.len();
        seen((begun > 1).then_some(()), || format!("{begun}"))
    })
    .await;
    adopter.ask_to_end();
    assert_eq!(scene.ended(&mut adopter).await, Some(1), "{}", adopter.log_tail());
    let begun = scene.env.list::<Database>().await.len();
    assert!(begun < scene.legacy.len(), "{}", adopter.log_tail());
    // The report and not what Ready says now: a machine whose heartbeat is late is not Ready for a while.
    let report: Value = serde_json::from_slice(&std::fs::read(&report).unwrap()).unwrap();
    let is_done = |entry: &&Value| matches!(entry["state"].as_str(), Some("adopted" | "already-adopted"));
    let done = report["databases"].as_array().unwrap().iter().filter(is_done).count();
    assert_eq!(done, begun, "{report:#}\n{}", adopter.log_tail());
    scene.env.kill_operator();
}

/// Adopts all by a script with this inventory: a look that changes nothing, the adoption, and a run that has
/// nothing to do.
async fn adopt_by_script(mut scene: Scene, script: &str, inventory: PathBuf) {
    let all = scene.legacy.len();
    let (code, printed) = scene.done(&scene.script(script, &inventory, &[])).await;
    assert_eq!((code, scene.written().len()), (Some(0), 0), "{printed}");
    assert!(printed.contains(&format!("{all} adoptable")), "{printed}");
    let report = scene.file("report.json").display().to_string();
    let command = scene.script(script, &inventory, &["--write", "--concurrency", "8", "--report", &report]);
    scene.adopt_while_killed(&command, kills()).await;
    let entries: Vec<Value> = serde_json::from_slice(&std::fs::read(&report).unwrap()).unwrap();
    let is_done = |entry: &&Value| entry["state"] == "adopted" || entry["state"] == "already adopted";
    assert_eq!(entries.iter().filter(is_done).count(), all, "{entries:#?}");
    let (code, printed) = scene.done(&scene.script(script, &inventory, &["--write"])).await;
    assert_eq!(code, Some(0), "{printed}");
    assert!(printed.contains(&format!("at the end: {all} already adopted")), "{printed}");
    scene.close().await;
}

#[test]
fn many_databases_of_an_inventory_are_adopted_by_the_script_in_bash() {
    run(async {
        let scene = Scene::of("many-bash").await;
        let rows = scene.inventory().await;
        let columns = [
            "namespace",
            "statefulset",
            "claim",
            "volume_id",
            "instance_id",
            "engine",
            "version",
            "instance_types",
            "service",
            "secret",
        ];
        let mut csv = columns.join(",") + "\n";
        for row in &rows {
            let cells = columns.map(|column| row[column].as_str().unwrap());
            writeln!(csv, "{}", cells.join(",")).unwrap();
        }
        let inventory = scene.file("inventory.csv");
        std::fs::write(&inventory, csv).unwrap();
        adopt_by_script(scene, "adopt.sh", inventory).await;
    });
}

#[test]
fn many_databases_of_an_inventory_are_adopted_by_the_script_in_python() {
    run(async {
        let scene = Scene::of("many-python").await;
        let rows: Vec<String> = scene.inventory().await.iter().map(|row| format!("{row}\n")).collect();
        let inventory = scene.file("inventory.jsonl");
        std::fs::write(&inventory, rows.concat()).unwrap();
        adopt_by_script(scene, "adopt.py", inventory).await;
    });
}
