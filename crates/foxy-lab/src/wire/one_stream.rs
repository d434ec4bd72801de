//! HTTP/2 with one who is asked (RFC 9113): a connection with a single stream at a time. Frames,
//! HPACK and flow control are the library's.

use crate::wire::streams::fields;
use crate::wire::tls::outbound::Channel;
use bytes::Bytes;
use foxy_http::{BodyLength, Method, ResponseHead, framing};
use h2::client::{Builder, ResponseFuture, SendRequest};
use std::future::poll_fn;
use std::task::{Context, Poll, Waker};
use tokio::task::JoinHandle;

const WINDOW: u32 = 1 << 20;

#[derive(Debug)]
struct Driver(JoinHandle<()>);

impl Drop for Driver {
    fn drop(&mut self) {
        self.0.abort();
    }
}

#[derive(Debug)]
pub struct OneStream {
    sender: SendRequest<Bytes>,
    driver: Driver,
}

impl OneStream {
    pub async fn open(stream: Channel) -> Result<Self, h2::Error> {
        let mut builder = Builder::new();
        builder
            .initial_window_size(WINDOW)
            .initial_connection_window_size(WINDOW)
            .enable_push(false);
        let (mut sender, connection) = builder.handshake::<_, Bytes>(stream).await?;
        // How the connection ends shows in what comes of its stream.
        let driver = Driver(tokio::task::spawn_local(async move { drop(connection.await) }));
        poll_fn(|context| sender.poll_ready(context)).await?;
        Ok(Self { sender, driver })
    }

    /// Whether the connection can take another request now.
    pub fn is_ready(&mut self) -> bool {
        // Nobody needs to be woken: whoever asks next says who.
        let mut context = Context::from_waker(Waker::noop());
        !self.driver.0.is_finished()
            && matches!(self.sender.poll_ready(&mut context), Poll::Ready(Ok(())))
    }

    pub fn ask(
        &mut self,
        request: http::Request<()>,
        body: Option<Bytes>,
    ) -> Result<ResponseFuture, h2::Error> {
        let (response, mut stream) = self.sender.send_request(request, body.is_none())?;
        if let Some(body) = body {
            stream.send_data(body, true)?;
        }
        Ok(response)
    }
}

/// Applies the rules of HTTP/1 heads; `None` if the head breaks them.
pub fn head_of(
    method: &Method,
    parts: &http::response::Parts,
) -> Option<(ResponseHead, BodyLength)> {
    let mut head = ResponseHead::new(parts.status.as_u16());
    for (name, value) in fields(&parts.headers) {
        head.headers.try_append(name, value).ok()?;
    }
    let (length, _) = framing::response(method, &mut head).ok()?;
    // What has no length ends with its stream, as chunks end with the last.
    let length = if length == BodyLength::UntilClose { BodyLength::Chunked } else { length };
    Some((head, length))
}
