//! A real S3 server of this host, with one empty bucket.

use std::fs;
use std::net::{Ipv4Addr, SocketAddrV4, TcpListener};
use std::path::PathBuf;

use freehold_box::base::process::{Launch, Process};
use tempfile::TempDir;

use super::installed;
use super::wait::until;

/// The key that it knows, and the secret one.
pub const KEY: (&str, &str) = ("AKIAARCHIVE", "a-secret-of-the-test");

/// The Region that it says it is in.
pub const REGION: &str = "eu-west-1";

/// Its bucket.
pub const BUCKET: &str = "backups";

/// A port of this address that no process listens at.
pub fn free_port(address: Ipv4Addr) -> u16 {
    TcpListener::bind((address, 0)).unwrap().local_addr().unwrap().port()
}

/// The server; it ends with this.
pub struct S3 {
    _process: Process,
    folder: TempDir,
    address: SocketAddrV4,
}

impl S3 {
    /// Starts one at this address of the host.
    pub async fn start(address: Ipv4Addr) -> Self {
        let gateway = || installed::go("github.com/versity/versitygw/cmd/versitygw", "v1.8.0");
        let program = tokio::task::spawn_blocking(gateway).await.unwrap();
        let port = free_port(address);
        let (folder, address) = (tempfile::tempdir().unwrap(), SocketAddrV4::new(address, port));
        let data = folder.path().join("data");
        fs::create_dir_all(data.join(BUCKET)).unwrap();
        let (port, data) = (address.to_string(), data.display().to_string());
        let args = ["--access", KEY.0, "--secret", KEY.1, "--region", REGION, "--port", &port, "--quiet"];
        let args = args.into_iter().chain(["posix", &data]).map(str::to_owned).collect();
        let process = Process::start(Launch { name: "s3", program: &program, args, folder: folder.path() });
        until("the S3 server answering", || async {
            tokio::net::TcpStream::connect(address).await.map_err(|it| it.to_string())
        })
        .await;
        Self { _process: process.unwrap(), folder, address }
    }

    /// Its URL.
    pub fn url(&self) -> String {
        format!("http://{}", self.address)
    }

    /// The files of the log that are archived below this path of the bucket, without their suffix.
    pub fn log(&self, path: &str) -> Vec<String> {
        let wals = self.folder.path().join("data").join(BUCKET).join(path).join("wals");
        let folders = fs::read_dir(&wals).into_iter().flatten().map(|it| it.unwrap().path());
        let below = |path: PathBuf| match fs::read_dir(&path) {
            Ok(entries) => entries.map(|it| it.unwrap().path()).collect(),
            Err(_) => vec![path],
        };
        let name = |path: PathBuf| path.file_stem().unwrap().to_string_lossy().into_owned();
        let mut files: Vec<String> = folders.flat_map(below).map(name).collect();
        files.sort();
        files
    }
}
