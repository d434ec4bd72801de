//! A copy that goes out as HTTP/2 (RFC 9113), on a connection of its own with one stream.

use super::Failure;
use super::exchange::{Copying, Reading};
use crate::REQUEST_ID;
use crate::streams::{fields, fields_of};
use crate::tls::outbound::Channel;
use bytes::Bytes;
use foxy_base::clock;
use foxy_http::{BodyLength, ResponseHead, framing};
use h2::client::Builder;
use std::future::poll_fn;
use tokio::task::JoinHandle;

/// Bytes of an answer that may be under way before they were digested.
const WINDOW: u32 = 1 << 20;

/// What carries a connection; it ends with the exchange.
struct Driver(JoinHandle<()>);

impl Drop for Driver {
    fn drop(&mut self) {
        self.0.abort();
    }
}

/// Asks on a connection that is there.
pub async fn converse(reading: &mut Reading, stream: Channel, copying: Copying<'_>) -> Result<(), Failure> {
    let message = &copying.asked.message;
    let request = head(copying).ok_or(Failure::NotHttp)?;
    let mut builder = Builder::new();
    builder.initial_window_size(WINDOW).initial_connection_window_size(WINDOW).enable_push(false);
    let handshake = reading.within(builder.handshake::<_, Bytes>(stream)).await?;
    let (mut sender, connection) = handshake.map_err(|error| failure(&error, Failure::Unanswered))?;
    // How the connection ends shows in what comes of its stream.
    let _driver = Driver(tokio::task::spawn_local(async move { drop(connection.await) }));
    let unanswered = |error| failure(&error, Failure::Unanswered);
    reading.within(poll_fn(|context| sender.poll_ready(context))).await?.map_err(unanswered)?;
    let (response, mut body) = sender.send_request(request, message.body.is_none()).map_err(unanswered)?;
    if let Some(data) = &message.body {
        body.send_data(data.clone(), true).map_err(unanswered)?;
    }
    let (parts, mut body) = reading.within(response).await?.map_err(unanswered)?.into_parts();
    reading.first = Some(clock::monotonic());
    let mut head = ResponseHead::new(parts.status.as_u16());
    for (name, value) in fields(&parts.headers) {
        head.headers.try_append(name, value).map_err(|_| Failure::NotHttp)?;
    }
    let (length, _) = framing::response(&message.method, &mut head).map_err(|_| Failure::NotHttp)?;
    // What has no length ends with its stream, as chunks end with the last.
    let length = if length == BodyLength::UntilClose { BodyLength::Chunked } else { length };
    reading.begin(head, length).await;
    while let Some(data) = reading.within(body.data()).await? {
        let data = data.map_err(|error| failure(&error, Failure::Closed))?;
        let count = data.len();
        reading.add(data).await;
        // A window that cannot be given back belongs to a stream that has ended.
        let _ = body.flow_control().release_capacity(count);
    }
    Ok(())
}

/// The head of a copy.
fn head(Copying { means, asked, number, .. }: Copying<'_>) -> Option<http::Request<()>> {
    let message = &asked.message;
    let mut request =
        http::Request::builder().method(message.method.as_str()).uri(asked.url()).body(()).ok()?;
    let map = request.headers_mut();
    *map = fields_of(&message.fields);
    if means.run.numbers.is_some() {
        map.insert(http::HeaderName::from_bytes(REQUEST_ID.as_bytes()).ok()?, number.into());
    }
    if let Some(body) = &message.body {
        map.insert(http::header::CONTENT_LENGTH, body.len().into());
    }
    Some(request)
}

/// What an error means: `ended` where the connection did.
fn failure(error: &h2::Error, ended: Failure) -> Failure {
    if error.is_remote() && error.is_reset() {
        Failure::Reset
    } else if error.is_io() || error.is_remote() {
        ended
    } else {
        Failure::NotHttp
    }
}
