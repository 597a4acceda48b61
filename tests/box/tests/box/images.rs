//! The images that machines start with: every one that the operator asks for is there, and a machine cannot
//! change the others'.

use std::collections::BTreeMap;
use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::{Duration, Instant};

use freehold::api::database::{Engine, EngineType};
use freehold::engine;
use freehold_box::account::node_kind;
use freehold_box::base::cache::Cache;
use freehold_box::base::process::{Launch, Process};
use freehold_box::base::progress::Progress;
use freehold_box::cluster::shared;
use freehold_box::cluster::tools::{Bundle, Program, Tools};
use freehold_box::machines::images::{Containerd, PAUSE, QUESTDB_VERSIONS, Template};

/// The name under which a kubelet looks for an image.
fn whole(image: &str) -> String {
    match image.split_once('/') {
        Some((registry, _)) if registry.contains('.') => image.to_owned(),
        Some(_) => format!("docker.io/{image}"),
        None => format!("docker.io/library/{image}"),
    }
}

/// Size and time of each file below a folder.
fn state(folder: &Path) -> BTreeMap<PathBuf, (u64, std::time::SystemTime)> {
    let mut state = BTreeMap::new();
    for entry in std::fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        let found = path.symlink_metadata().unwrap();
        if found.is_dir() {
            state.extend(self::state(&path));
        } else {
            state.insert(path, (found.len(), found.modified().unwrap()));
        }
    }
    state
}

#[test]
fn a_machine_starts_with_every_image_that_the_operator_asks_for() {
    if !node_kind::can_be_real("the images of machines") {
        return;
    }
    shared::run(async {
        let cache = Cache::from_environment();
        let tools = Tools::ensure(&cache, &[Bundle::Node], &Progress::on_stderr()).await.unwrap();
        let containerd =
            Containerd { daemon: tools.program(Program::Containerd), ctr: tools.program(Program::Ctr) };
        let template = Template::ensure(&cache, &containerd, &Progress::on_stderr()).await.unwrap();
        let made = template.root().metadata().unwrap().ino();
        let again = Template::ensure(&cache, &containerd, &Progress::silent()).await.unwrap();
        assert_eq!(again.root().metadata().unwrap().ino(), made, "nothing is made twice");

        let mut asked = vec![PAUSE.to_owned()];
        for version in QUESTDB_VERSIONS {
            let engine =
                Engine { kind: EngineType::Questdb, version: Some(version.to_owned()), custom: None };
            asked.push(whole(&engine::profile(&engine, &BTreeMap::new()).unwrap().image));
        }
        for name in &asked {
            assert!(template.names().contains(name), "{name} is not in {:?}", template.names());
        }
        assert!(template.names().contains(&"docker.io/library/postgres:15".to_owned()));
        machine_has(&template, &cache, &containerd).await;
    });
}

/// A machine's containerd, started on what it was given, has all images, and whatever it writes stays its
/// own.
async fn machine_has(template: &Template, cache: &Cache, containerd: &Containerd) {
    let folder = tempfile::Builder::new().prefix("machine-").tempdir_in(cache.images()).unwrap();
    let (root, socket) = (folder.path().join("root"), folder.path().join("containerd.sock"));
    let before = state(template.root());
    template.install(&root).await.unwrap();
    let config = folder.path().join("config.toml");
    let text = format!(
        "version = 3\nroot = \"{0}/root\"\nstate = \"{0}/state\"\ndisabled_plugins = \
         [\"io.containerd.grpc.v1.cri\", \"io.containerd.cri.v1.images\", \"io.containerd.cri.v1.runtime\", \
         \"io.containerd.nri.v1.nri\"]\n[grpc]\naddress = \"{1}\"\n",
        folder.path().display(),
        socket.display(),
    );
    std::fs::write(&config, text).unwrap();
    let args = vec!["--config".to_owned(), config.display().to_string()];
    let launch = Launch { name: "containerd", program: &containerd.daemon, args, folder: folder.path() };
    let mut daemon = Process::start(launch).unwrap();
    let ctr = |args: &[&str]| {
        let output = Command::new(&containerd.ctr)
            .arg("-a")
            .arg(&socket)
            .args(["-n", "k8s.io"])
            .args(args)
            .output()
            .unwrap();
        output.status.success().then(|| String::from_utf8(output.stdout).unwrap())
    };
    let started = Instant::now();
    let listed = loop {
        if let Some(listed) = ctr(&["images", "list"]) {
            break listed;
        }
        assert!(
            started.elapsed() < Duration::from_secs(30) && daemon.ended().is_none(),
            "{}",
            daemon.log_tail()
        );
        tokio::time::sleep(Duration::from_millis(100)).await;
    };
    for name in template.names() {
        let line = listed.lines().find(|line| line.starts_with(&format!("{name} "))).unwrap_or_default();
        assert!(line.contains("io.cri-containerd.pinned=pinned"), "{name} in:\n{listed}");
        // A container's own snapshot on top: needs the image to be complete and unpacked.
        ctr(&["containers", "create", name, &name.replace(['/', ':'], "-")]).unwrap();
    }
    ctr(&["images", "remove", PAUSE]).unwrap();
    assert!(daemon.stop(Duration::from_secs(30)).await, "{}", daemon.log_tail());
    assert_eq!(state(template.root()), before);
}
