//! Opens a tunnel to an origin through a parent proxy, with a CONNECT request (RFC 9110 §9.3.6).

use crate::core::transport::Transport;
use crate::upstream::error::ParentFailure;
use bytes::{Bytes, BytesMut};
use foxy_http::{BodyLength, Headers, Limits, Method, ResponseDecoder, ResponseEvent, encode};
use tokio::io::{AsyncReadExt, AsyncWriteExt};

/// The answer of a parent proxy to a CONNECT.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum TunnelAnswer {
    /// The tunnel is open. The bytes came through the tunnel, directly after the parent proxy's
    /// answer.
    Open(Bytes),
    /// The parent proxy refused with this status.
    Status(u16),
    /// The parent proxy closed the connection, or its answer is not HTTP.
    Broken,
}

impl TunnelAnswer {
    /// Returns the bytes that came through an open tunnel with the parent proxy's answer. Otherwise
    /// returns the reason for the failure.
    pub(crate) fn opened(self) -> Result<Bytes, ParentFailure> {
        Err(match self {
            Self::Open(rest) => return Ok(rest),
            Self::Status(407) => ParentFailure::Credentials,
            Self::Status(508) => ParentFailure::Loop,
            Self::Status(504) => ParentFailure::TimedOut,
            Self::Status(400..500) => ParentFailure::Refused,
            Self::Status(_) | Self::Broken => ParentFailure::Failed,
        })
    }
}

/// Sends a CONNECT for `authority` (host and port) with the given header fields, and reads the
/// parent proxy's answer.
pub(crate) async fn ask_for_tunnel(
    stream: &mut Transport,
    authority: &str,
    headers: &Headers,
    limits: Limits,
) -> TunnelAnswer {
    let mut head = BytesMut::new();
    encode::request_head(&Method::Connect, authority.as_bytes(), headers, &mut head);
    if stream.write_all(&head).await.is_err() || stream.flush().await.is_err() {
        return TunnelAnswer::Broken;
    }
    let mut decoder = ResponseDecoder::new(limits);
    decoder.expect(&Method::Connect);
    let mut buffer = BytesMut::new();
    loop {
        match decoder.next(&mut buffer) {
            Ok(Some(ResponseEvent::Head(_, BodyLength::Tunnel))) => {
                return TunnelAnswer::Open(buffer.freeze());
            }
            Ok(Some(ResponseEvent::Head(head, _))) => return TunnelAnswer::Status(head.status),
            Ok(Some(_)) => {}
            Ok(None) => match stream.read_buf(&mut buffer).await {
                Ok(count) if count > 0 => {}
                Ok(_) | Err(_) => return TunnelAnswer::Broken,
            },
            Err(_) => return TunnelAnswer::Broken,
        }
    }
}
