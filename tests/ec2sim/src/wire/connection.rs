//! Connections that can be cut from inside a request, for the faults that take the answer away.

use std::{
    io,
    net::SocketAddr,
    pin::Pin,
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
    task::{Context, Poll},
    time::Duration,
};

use axum::{
    extract::connect_info::Connected,
    http::StatusCode,
    response::{IntoResponse, Response},
    serve::IncomingStream,
};
use tokio::{
    io::{AsyncRead, AsyncWrite, ReadBuf},
    net::{TcpListener, TcpStream},
};

/// How long to wait after a failed accept, most likely for want of file descriptors.
const ACCEPT_PAUSE: Duration = Duration::from_millis(100);

/// A listener whose connections have a breaker.
pub(super) struct Listener(pub(super) TcpListener);

/// Cuts one connection.
#[derive(Clone, Debug, Default)]
pub(super) struct Breaker(Arc<AtomicBool>);

pub(super) struct Connection {
    stream: TcpStream,
    breaker: Breaker,
}

impl Breaker {
    /// Cuts the connection; what is returned is never sent.
    pub(super) fn reset(&self) -> Response {
        self.0.store(true, Ordering::SeqCst);
        StatusCode::NO_CONTENT.into_response()
    }

    fn check(&self) -> io::Result<()> {
        if self.0.load(Ordering::SeqCst) { Err(io::ErrorKind::ConnectionReset.into()) } else { Ok(()) }
    }
}

impl axum::serve::Listener for Listener {
    type Io = Connection;
    type Addr = SocketAddr;

    async fn accept(&mut self) -> (Self::Io, Self::Addr) {
        loop {
            match self.0.accept().await {
                Ok((stream, address)) => {
                    // Without it small answers are only slower.
                    let _ = stream.set_nodelay(true);
                    return (Connection { stream, breaker: Breaker::default() }, address);
                }
                Err(error) => {
                    tracing::warn!(%error, "failed to accept a connection");
                    tokio::time::sleep(ACCEPT_PAUSE).await;
                }
            }
        }
    }

    fn local_addr(&self) -> io::Result<Self::Addr> {
        self.0.local_addr()
    }
}

impl Connected<IncomingStream<'_, Listener>> for Breaker {
    fn connect_info(stream: IncomingStream<'_, Listener>) -> Self {
        stream.io().breaker.clone()
    }
}

impl Connection {
    fn check(&self) -> io::Result<()> {
        self.breaker.check().inspect_err(|_| {
            // With no time to linger the system sends a reset when the socket is closed.
            let _ = self.stream.set_zero_linger();
        })
    }
}

impl AsyncRead for Connection {
    fn poll_read(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        self.check()?;
        Pin::new(&mut self.stream).poll_read(context, buffer)
    }
}

impl AsyncWrite for Connection {
    fn poll_write(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        self.check()?;
        Pin::new(&mut self.stream).poll_write(context, bytes)
    }

    fn poll_flush(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        self.check()?;
        Pin::new(&mut self.stream).poll_flush(context)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        self.check()?;
        Pin::new(&mut self.stream).poll_shutdown(context)
    }
}
