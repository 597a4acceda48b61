//! Tells a kubelet that a CSI driver is there: what the program node-driver-registrar does, which is not to be had as a Go module.
//!
//! The kubelet finds a socket in its folder of registrations and asks there, by gRPC (the service `pluginregistration.Registration` of
//! k8s.io/kubelet), who the plugin is and where it listens. Two calls whose messages are a few strings: HTTP/2 and these lines do.

use std::convert::Infallible;
use std::io;
use std::path::Path;

use bytes::Bytes;
use h2::server::SendResponse;
use http::{HeaderMap, HeaderValue, Response, StatusCode};
use tokio::net::{UnixListener, UnixStream};

/// The version of the CSI calls that the driver speaks, as the real registrar says it.
const VERSION: &str = "1.0.0";

/// What the kubelet is told.
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
async fn answer_all(stream: UnixStream, plugin: &Plugin) -> Result<(), h2::Error> {
    let mut connection = h2::server::handshake(stream).await?;
    while let Some(call) = connection.accept().await {
        let (request, respond) = call?;
        let call = request.uri().path().rsplit('/').next().unwrap_or_default().to_owned();
        match call.as_str() {
            "GetInfo" => answer(respond, Some(&plugin_info(plugin)))?,
            "NotifyRegistrationStatus" => {
                tracing::debug!(driver = plugin.name, "the kubelet has registered the driver, or says in its own log why not");
                answer(respond, Some(&[]))?;
            }
            _ => answer(respond, None)?,
        }
    }
    Ok(())
}

/// One message (gRPC over HTTP/2: a byte for "not compressed", the length, the message; the status comes last), or "unimplemented".
fn answer(mut respond: SendResponse<Bytes>, message: Option<&[u8]>) -> Result<(), h2::Error> {
    let mut response = Response::new(());
    *response.status_mut() = StatusCode::OK;
    response.headers_mut().insert("content-type", HeaderValue::from_static("application/grpc"));
    let mut stream = respond.send_response(response, false)?;
    if let Some(message) = message {
        let length = u32::try_from(message.len()).unwrap_or_default();
        let mut frame = vec![0];
        frame.extend(length.to_be_bytes());
        frame.extend(message);
        stream.send_data(frame.into(), false)?;
    }
    let mut trailers = HeaderMap::new();
    trailers.insert("grpc-status", HeaderValue::from_static(if message.is_some() { "0" } else { "12" }));
    stream.send_trailers(trailers)
}

/// The message `PluginInfo`: type, name, endpoint and the supported versions, in this order from field 1.
fn plugin_info(plugin: &Plugin) -> Vec<u8> {
    let fields = ["CSIPlugin", &plugin.name, &plugin.endpoint, VERSION];
    (1_u8..).zip(fields).flat_map(|(number, text)| string(number, text)).collect()
}

/// A string of a protocol buffer: the field's number and type 2, the length, the bytes. One byte of length is enough for less than 128.
fn string(number: u8, text: &str) -> Vec<u8> {
    let length = u8::try_from(text.len()).ok().filter(|length| *length < 128).unwrap_or_default();
    [(number << 3) | 2, length].into_iter().chain(text.bytes().take(length.into())).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn a_kubelet_that_asks_is_told_type_name_socket_and_version() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("reg.sock");
        let plugin = Plugin { name: "ebs.csi.aws.com".to_owned(), endpoint: "/var/lib/kubelet/csi.sock".to_owned() };
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
            let request = http::Request::post("http://localhost/pluginregistration.Registration/GetInfo").body(()).unwrap();
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
