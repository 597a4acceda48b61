//! A server with a clock that is stepped by hand, and a client that knows nothing but HTTP.

use std::net::SocketAddr;

use ec2sim::{Clock, Limits, Options, Simulator};
use tokio::{
    io::{AsyncReadExt as _, AsyncWriteExt as _},
    net::{TcpListener, TcpStream},
    task::JoinHandle,
};
use tokio_util::sync::CancellationToken;

pub const RUN: [(&str, &str); 7] = [
    ("Action", "RunInstances"),
    ("Version", "2016-11-15"),
    ("ImageId", "ami-0000000000000000a"),
    ("InstanceType", "r7i.large"),
    ("MinCount", "1"),
    ("MaxCount", "1"),
    ("ClientToken", "token-1"),
];

pub fn options() -> Options {
    Options {
        clock: Clock::Manual,
        start: Some("2026-03-01T00:00:00Z".parse().unwrap()),
        limits: Limits { rate: None, ..Limits::default() },
        ..Options::default()
    }
}

pub struct Server {
    pub sim: Simulator,
    pub address: SocketAddr,
    stop: CancellationToken,
    served: JoinHandle<std::io::Result<()>>,
}

/// What came back: the status and the body.
#[derive(Debug)]
pub struct Answer {
    pub status: u16,
    pub body: String,
}

impl Server {
    pub async fn start(options: Options) -> Self {
        let sim = Simulator::new(options).unwrap();
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        let stop = CancellationToken::new();
        let served = tokio::spawn({
            let (sim, stop) = (sim.clone(), stop.clone());
            async move { sim.serve(listener, stop).await }
        });
        Self { sim, address, stop, served }
    }

    pub async fn stop(self) {
        self.stop.cancel();
        self.served.await.unwrap().unwrap();
    }

    /// A call as an SDK makes it: a form, signed by the key `tester`.
    pub async fn call(&self, params: &[(&str, &str)]) -> std::io::Result<Answer> {
        let form = form_urlencoded::Serializer::new(String::new()).extend_pairs(params).finish();
        let signed = "Authorization: AWS4-HMAC-SHA256 Credential=tester/20260301/us-east-1/ec2/aws4_request, \
                      SignedHeaders=host, Signature=0\r\nContent-Type: application/x-www-form-urlencoded\r\n";
        self.send("POST", "/", signed, &form).await
    }

    /// A request of the control API.
    pub async fn control(&self, method: &str, path: &str, body: &str) -> Answer {
        self.send(method, path, "Content-Type: application/json\r\n", body).await.unwrap()
    }

    pub async fn send(&self, method: &str, path: &str, headers: &str, body: &str) -> std::io::Result<Answer> {
        let mut stream = TcpStream::connect(self.address).await?;
        let length = body.len();
        let head = format!(
            "{method} {path} HTTP/1.1\r\nHost: sim\r\nConnection: close\r\nContent-Length: \
            {length}\r\n{headers}\r\n"
        );
        stream.write_all(head.as_bytes()).await?;
        stream.write_all(body.as_bytes()).await?;
        let mut bytes = Vec::new();
        stream.read_to_end(&mut bytes).await?;
        let text = String::from_utf8(bytes).unwrap();
        let (head, body) = text.split_once("\r\n\r\n").ok_or(std::io::ErrorKind::UnexpectedEof)?;
        let status = head.split(' ').nth(1).unwrap().parse().unwrap();
        Ok(Answer { status, body: body.to_owned() })
    }
}

impl Answer {
    /// The text of the first element of this name.
    pub fn text(&self, name: &str) -> Option<&str> {
        let (open, close) = (format!("<{name}>"), format!("</{name}>"));
        let from = self.body.find(&open)? + open.len();
        let to = from + self.body[from..].find(&close)?;
        Some(&self.body[from..to])
    }

    pub fn count(&self, name: &str) -> usize {
        self.body.matches(&format!("<{name}>")).count()
    }

    pub fn json(&self) -> serde_json::Value {
        serde_json::from_str(&self.body).unwrap()
    }
}
