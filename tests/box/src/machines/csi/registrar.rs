//! Tells a kubelet that a CSI driver is there: what the program node-driver-registrar does, which is not to
//! be had as a Go module.
//!
//! The kubelet finds a socket in its folder of registrations and asks there, by gRPC (the service
//! `pluginregistration.Registration` of k8s.io/kubelet), who the plugin is and where it listens; then it says
//! how that went. gRPC is HTTP/2, and the kubelet's says the socket's path where a host's name belongs
//! (`:authority: %2Fvar%2Flib…`), which Rust's HTTP/2 refuses. So these are the few frames of RFC 9113 that
//! two calls take. The calls are distinguished by their messages, and no header of a request needs to be
//! read: the question is an empty message, the other call's is not.

use std::collections::HashMap;
use std::convert::Infallible;
use std::io;
use std::path::Path;

use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::{UnixListener, UnixStream};

/// The version of the CSI calls that the driver speaks, as the real registrar says it.
const VERSION: &str = "1.0.0";

/// What a client sends first (RFC 9113, section 3.4).
const PREFACE: usize = 24;

/// The types of frames that matter (section 6).
const DATA: u8 = 0;
const HEADERS: u8 = 1;
const SETTINGS: u8 = 4;
const PING: u8 = 6;
const GO_AWAY: u8 = 7;

/// The flags; the same bit acknowledges settings and pings and ends a stream.
const ACK: u8 = 1;
const END_STREAM: u8 = 1;
const END_HEADERS: u8 = 4;

/// The largest frame that a peer sends unasked (section 4.2).
const LARGEST: usize = 16_384;

/// `:status: 200` from the static table, and a content type whose name is from there (RFC 7541, appendix A).
const ANSWER: &[u8] = b"\x88\x0f\x10\x10application/grpc";
/// What comes last: all went well.
const TRAILERS: &[u8] = b"\x00\x0bgrpc-status\x010";

/// What is reported to the kubelet.
#[derive(Clone, Debug)]
pub(super) struct Plugin {
    /// The driver's name.
    pub(super) name: String,
    /// The driver's socket, as the kubelet sees it.
    pub(super) endpoint: String,
}

/// Answers on a new socket at `path` for as long as it is polled.
pub(super) async fn serve(path: &Path, plugin: Plugin) -> io::Result<Infallible> {
    let _ = std::fs::remove_file(path);
    let listener = UnixListener::bind(path)?;
    loop {
        let (stream, _) = listener.accept().await?;
        let plugin = plugin.clone();
        tokio::spawn(async move {
            if let Err(error) = answer_all(stream, &plugin).await {
                tracing::debug!(%error, "a kubelet's connection to the registrar ended");
            }
        });
    }
}

/// Answers all calls of one connection.
async fn answer_all(mut stream: UnixStream, plugin: &Plugin) -> io::Result<()> {
    stream.read_exact(&mut [0; PREFACE]).await?;
    stream.write_all(&frame(SETTINGS, 0, 0, &[])).await?;
    let mut asked: HashMap<u32, Vec<u8>> = HashMap::new();
    loop {
        let mut head = [0; 9];
        stream.read_exact(&mut head).await?;
        let [a, b, c, kind, flags, stream_id @ ..] = head;
        let id = u32::from_be_bytes(stream_id) & 0x7fff_ffff;
        let length = usize::try_from(u32::from_be_bytes([0, a, b, c])).unwrap_or(usize::MAX);
        if length > LARGEST {
            return Err(io::Error::other("a frame is larger than a kubelet sends"));
        }
        let mut payload = vec![0; length];
        stream.read_exact(&mut payload).await?;
        match kind {
            SETTINGS if flags & ACK == 0 => stream.write_all(&frame(SETTINGS, ACK, 0, &[])).await?,
            PING if flags & ACK == 0 => stream.write_all(&frame(PING, ACK, 0, &payload)).await?,
            DATA => asked.entry(id).or_default().extend(payload),
            GO_AWAY => return Ok(()),
            _ => {}
        }
        if matches!(kind, DATA | HEADERS) && flags & END_STREAM != 0 {
            let question = asked.remove(&id).unwrap_or_default();
            // Behind the five bytes that every message of gRPC begins with.
            let message = if question.len() > 5 { Vec::new() } else { plugin_info(plugin) };
            let mut data = vec![0];
            data.extend(u32::try_from(message.len()).unwrap_or_default().to_be_bytes());
            data.extend(message);
            let answer = [
                frame(HEADERS, END_HEADERS, id, ANSWER),
                frame(DATA, 0, id, &data),
                frame(HEADERS, END_HEADERS | END_STREAM, id, TRAILERS),
            ];
            stream.write_all(&answer.concat()).await?;
        }
    }
}

/// A frame: three bytes of length, type, flags, four bytes of stream, the payload (section 4.1).
fn frame(kind: u8, flags: u8, stream: u32, payload: &[u8]) -> Vec<u8> {
    let length = u32::try_from(payload.len()).unwrap_or_default().to_be_bytes();
    let [_, length @ ..] = length;
    [&length[..], &[kind, flags], &stream.to_be_bytes(), payload].concat()
}

/// The message `PluginInfo`: type, name, endpoint and the supported versions, in this order from field 1.
fn plugin_info(plugin: &Plugin) -> Vec<u8> {
    let fields = ["CSIPlugin", &plugin.name, &plugin.endpoint, VERSION];
    (1_u8..).zip(fields).flat_map(|(number, text)| string(number, text)).collect()
}

/// A string of a protocol buffer: the field's number and type 2, the length, the bytes. One byte of length is
/// enough for less than 128.
fn string(number: u8, text: &str) -> Vec<u8> {
    let length = u8::try_from(text.len()).ok().filter(|length| *length < 128).unwrap_or_default();
    [(number << 3) | 2, length].into_iter().chain(text.bytes().take(length.into())).collect()
}

#[cfg(test)]
mod tests {
    use bytes::Bytes;

    use super::*;

    #[tokio::test]
    async fn a_kubelet_that_asks_is_told_type_name_socket_and_version() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("reg.sock");
        let plugin =
            Plugin { name: "ebs.csi.aws.com".to_owned(), endpoint: "/var/lib/kubelet/csi.sock".to_owned() };
        let serving = serve(&path, plugin);
        let asking = async {
            let stream = loop {
                match UnixStream::connect(&path).await {
                    Ok(stream) => break stream,
                    Err(_) => tokio::task::yield_now().await,
                }
            };
            let (client, connection) = h2::client::handshake(stream).await.unwrap();
            tokio::spawn(connection);
            let mut client = client.ready().await.unwrap();
            let request = http::Request::post("http://localhost/pluginregistration.Registration/GetInfo")
                .body(())
                .unwrap();
            let (response, mut body) = client.send_request(request, false).unwrap();
            body.send_data(Bytes::from_static(&[0, 0, 0, 0, 0]), true).unwrap();
            let mut stream = response.await.unwrap().into_body();
            let message = stream.data().await.unwrap().unwrap();
            let trailers = stream.trailers().await.unwrap().unwrap();
            (message, trailers["grpc-status"].clone())
        };
        let (message, status) = tokio::select! {
            answer = asking => answer,
            ended = serving => panic!("{ended:?}"),
        };
        let expected = b"\0\0\0\0\x3e\x0a\x09CSIPlugin\x12\x0febs.csi.aws.com\x1a\x19/var/lib/kubelet/csi.sock\x22\x051.0.0";
        assert_eq!((&message[..], status.as_bytes()), (&expected[..], &b"0"[..]));
    }
}
