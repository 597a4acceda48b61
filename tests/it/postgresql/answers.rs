//! A server whose answer is no text: QuestDB 8.2.0 answers a simple query in the binary formats that another
//! client had asked for, whose place among its connections is taken next.

use freehold::engine::client::{Engines as _, PgWire};
use tokio::io::{self, AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpStream;

use super::at;
use super::tls::{listening, requested};

/// A message of the wire protocol.
fn message(kind: u8, body: &[u8]) -> Vec<u8> {
    let length = u32::try_from(body.len() + 4).unwrap().to_be_bytes();
    [&[kind], &length[..], body].concat()
}

async fn skip(client: &mut TcpStream) -> io::Result<()> {
    let length = client.read_u32().await?;
    let mut body = vec![0; usize::try_from(length).unwrap() - 4];
    client.read_exact(&mut body).await.map(drop)
}

/// Lets every client in, and answers each query with one row of one value.
async fn answer(mut client: TcpStream, value: &[u8]) -> io::Result<()> {
    requested(&mut client).await?;
    client.write_all(b"N").await?;
    skip(&mut client).await?;
    let (ready, described) = (message(b'Z', b"I"), [&[0, 1, b'a', 0][..], &[0; 18]].concat());
    client.write_all(&[message(b'R', &[0; 4]), ready.clone()].concat()).await?;
    let length = u32::try_from(value.len()).unwrap().to_be_bytes();
    let row = [&[0, 1], &length[..], value].concat();
    let all = [message(b'T', &described), message(b'D', &row), message(b'C', b"SELECT 1\0"), ready].concat();
    while client.read_u8().await? == b'Q' {
        skip(&mut client).await?;
        client.write_all(&all).await?;
    }
    Ok(())
}

#[tokio::test]
async fn an_answer_that_is_no_text_is_an_error_and_ends_no_process() {
    for (value, why) in [(&[0xff, 1][..], "invalid utf-8"), (b"t", "None")] {
        let (address, _task) = listening(move |client| answer(client, value)).await;
        let error = PgWire.checkpoint(&at(address)).await.unwrap_err().to_string();
        assert!(error.contains("could not be read") && error.contains(why), "{error}");
    }
}
