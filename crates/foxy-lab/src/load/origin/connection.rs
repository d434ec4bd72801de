//! Serves one connection of foxy's own origin. Reads requests and sends answers.

use super::{Health, OriginState};
use crate::load::origin::answer::{self, BodyPart, Reply};
use bytes::BytesMut;
use foxy_base::clock;
use foxy_http::{Persistence, RequestDecoder, RequestEvent, Version, encode};
use foxy_workload::polymix::{IDLE_LIMIT, Side, connection_uses};
use std::io;
use std::sync::atomic::Ordering;
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt};
use xxhash_rust::xxh3::Xxh3;

const PIECE: usize = 64 << 10;
const READ: usize = 4 << 10;
/// The largest output buffer in bytes that an idle connection keeps for its next answer.
const KEPT: usize = 16 << 10;

struct Uses {
    carried: u32,
    most: u32,
    limited: bool,
}

pub(super) async fn serve(
    mut stream: impl AsyncRead + AsyncWrite + Unpin,
    shared: &OriginState,
) -> io::Result<()> {
    let (mut decoder, mut input, mut output) =
        (RequestDecoder::default(), BytesMut::new(), BytesMut::new());
    let (mut pending, mut sent): (Option<(Reply, bool)>, Xxh3) = (None, Xxh3::new());
    let number = shared.connections.fetch_add(1, Ordering::Relaxed);
    let mut uses = Uses { carried: 0, most: connection_uses(Side::Server, number), limited: false };
    loop {
        match decoder.next(&mut input) {
            Ok(Some(RequestEvent::Head(head, _))) => {
                let persistent =
                    Persistence::of(head.version, &head.headers) == Persistence::KeepAlive;
                let mut reply = answer::answer(&head, clock::wall());
                let goes_on = persistent && uses.go_on(&reply);
                if persistent && !goes_on {
                    reply.head.headers.append("Connection", "close");
                } else if persistent && head.version == Version::Http10 {
                    reply.head.headers.append("Connection", "keep-alive");
                }
                pending = Some((reply, goes_on));
            }
            Ok(Some(RequestEvent::End)) => {
                let Some((mut reply, goes_on)) = pending.take() else { continue };
                reply.to_what_came(sent.digest());
                sent.reset();
                match shared.health.get() {
                    Health::Well => {}
                    Health::Down => return Ok(()),
                    Health::Slow(delay) => tokio::time::sleep(delay).await,
                }
                shared.requests.fetch_add(1, Ordering::Relaxed);
                if !send(&mut stream, &reply, &mut output, shared).await? || !goes_on {
                    return stream.shutdown().await;
                }
                if output.capacity() > KEPT {
                    output = BytesMut::new();
                }
            }
            Ok(Some(RequestEvent::Body(piece))) => sent.update(&piece),
            Ok(Some(RequestEvent::Trailers(_))) => {}
            Ok(None) => {
                input.reserve(READ);
                if !read(&mut stream, &mut input, uses.limited).await? {
                    return Ok(());
                }
            }
            Err(error) => {
                let text = format!(
                    "HTTP/1.1 {} Refused\r\nConnection: close\r\nContent-Length: 0\r\n\r\n",
                    error.status()
                );
                stream.write_all(text.as_bytes()).await?;
                return stream.shutdown().await;
            }
        }
    }
}

impl Uses {
    const fn go_on(&mut self, reply: &Reply) -> bool {
        self.carried += 1;
        self.limited |= reply.short_lived;
        !self.limited || self.carried < self.most
    }
}

/// Reads bytes. Returns false at the end of the stream, and if `limited` also after the idle
/// timeout.
async fn read(
    stream: &mut (impl AsyncRead + Unpin),
    input: &mut BytesMut,
    limited: bool,
) -> io::Result<bool> {
    if !limited {
        return Ok(stream.read_buf(input).await? > 0);
    }
    match tokio::time::timeout(IDLE_LIMIT, stream.read_buf(input)).await {
        Ok(read) => Ok(read? > 0),
        Err(_) => Ok(false),
    }
}

/// Sends an answer. Returns false if the workload makes the origin close the connection within the
/// answer.
async fn send(
    stream: &mut (impl AsyncWrite + Unpin),
    reply: &Reply,
    output: &mut BytesMut,
    shared: &OriginState,
) -> io::Result<bool> {
    if !reply.delay.is_zero() {
        tokio::time::sleep(reply.delay).await;
    }
    output.clear();
    encode::response_head(&reply.head, output);
    let mut sent = 0;
    if let Some(BodyPart { stream: body, offset, length }) = reply.body {
        let length = reply.breaks_off.unwrap_or(length);
        while sent < length {
            if sent > 0 {
                stream.write_all(output).await?;
                output.clear();
            }
            let piece = usize::try_from(length - sent).unwrap_or(PIECE).min(PIECE);
            if reply.chunked {
                output.extend_from_slice(format!("{piece:x}\r\n").as_bytes());
            }
            let start = output.len();
            output.resize(start + piece, 0);
            body.fill(offset + sent, &mut output[start..]);
            if reply.chunked {
                output.extend_from_slice(encode::CRLF);
            }
            sent += piece as u64;
        }
        if reply.chunked {
            output.extend_from_slice(b"0\r\n\r\n");
        }
    }
    // The origin counts the answer before it sends the last piece. A client that has the complete
    // answer can then rely on the counts.
    shared.count(reply, sent);
    stream.write_all(output).await?;
    stream.flush().await?;
    Ok(reply.breaks_off.is_none())
}
