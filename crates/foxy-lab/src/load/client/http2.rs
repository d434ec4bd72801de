//! A load client that uses HTTP/2, by prior knowledge (RFC 9113 §3.3) or by ALPN. The connection of
//! the client carries one request at a time.

use super::wire::{ClientTarget, POSTED, fields, method};
use super::{Broken, Reading, Unanswered};
use crate::load::outcome::{Answered, ErrorCause};
use crate::wire::REQUEST_ID;
use crate::wire::tls::outbound::Channel;
use bytes::Bytes;
use foxy_base::WallTime;
use foxy_workload::Request;
use foxy_workload::polymix::requests::Manner;
use h2::client::SendRequest;
use std::io;

const WINDOW: u32 = 1 << 20;

pub async fn begin(stream: Channel) -> Result<SendRequest<Bytes>, ErrorCause> {
    let mut builder = h2::client::Builder::new();
    builder.initial_window_size(WINDOW).initial_connection_window_size(WINDOW).enable_push(false);
    let (sender, connection) =
        builder.handshake::<_, Bytes>(stream).await.map_err(|_| ErrorCause::Protocol)?;
    tokio::task::spawn_local(async move {
        // The streams report this error too, so the result does not matter here.
        let _ = connection.await;
    });
    Ok(sender)
}

pub async fn ask(
    sender: &mut SendRequest<Bytes>,
    wire: &ClientTarget,
    request: &Request,
    number: u64,
    now: WallTime,
    reading: &mut Reading,
) -> Result<Answered, Broken> {
    let posts = request.manner == Manner::Post;
    let uri = format!("{}://{}{}", wire.scheme(), wire.authority(request), request.content);
    let mut head = http::Request::builder().method(method(request.manner).as_str()).uri(uri);
    head = head.header(REQUEST_ID, number);
    for (name, value) in fields(request, now) {
        head = head.header(name, value);
    }
    if posts {
        head = head.header("Content-Length", POSTED.len());
    }
    let head = head.body(()).map_err(|_| ErrorCause::Protocol)?;
    let before = |error| cause(&error, false);
    std::future::poll_fn(|context| sender.poll_ready(context)).await.map_err(before)?;
    let (response, mut body) = sender.send_request(head, !posts).map_err(before)?;
    if posts {
        body.send_data(Bytes::from_static(POSTED.as_bytes()), true).map_err(before)?;
    }
    let (head, mut body) = response.await.map_err(before)?.into_parts();
    reading.begin(head.status.as_u16(), |name| head.headers.get(name)?.to_str().ok());
    while let Some(data) = body.data().await {
        let broken = |error| Unanswered::Failed(cause(&error, true));
        let data = data.map_err(|error| Broken { cause: broken(error), head: reading.head() })?;
        reading.take(&data).map_err(|cause| Broken { cause, head: reading.head() })?;
        // The call fails only if the stream has ended. Then flow control no longer matters.
        let _ = body.flow_control().release_capacity(data.len());
    }
    Ok(reading.finish().ok_or(ErrorCause::Protocol)?)
}

fn cause(error: &h2::Error, begun: bool) -> ErrorCause {
    match error.get_io().map(io::Error::kind) {
        _ if error.is_library() => ErrorCause::Protocol,
        Some(io::ErrorKind::ConnectionReset) => ErrorCause::Reset,
        Some(_) if !begun => ErrorCause::Closed,
        _ => ErrorCause::Incomplete,
    }
}
