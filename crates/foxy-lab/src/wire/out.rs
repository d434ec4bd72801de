//! Where an answer goes: text on a connection, or frames of a stream; and the answers that are the
//! lab's own.

use crate::wire::streams::Frames;
use crate::wire::tls::inbound::Inbound;
use bytes::BytesMut;
use foxy_http::{ResponseHead, encode};
use std::io;
use tokio::io::AsyncWriteExt;

/// Head of an uncachable plain-text answer of the lab.
pub fn own(status: u16, text: &str) -> ResponseHead {
    let mut head = ResponseHead::new(status);
    head.headers.append("Content-Type", "text/plain");
    head.headers.append("Content-Length", text.len().to_string());
    head.headers.append("Cache-Control", "no-store");
    head.headers.append("Connection", "close");
    head
}

pub fn as_text((head, text): &(ResponseHead, String)) -> BytesMut {
    let mut output = BytesMut::new();
    encode::response_head(head, &mut output);
    output.extend_from_slice(text.as_bytes());
    output
}

#[derive(Debug)]
pub enum Out<'a> {
    Text(&'a mut Inbound),
    Frames(&'a mut Frames),
}

impl Out<'_> {
    /// Writes the head: as text to `output`, or as frames. Returns its bytes if sent as frames.
    pub fn head(&mut self, head: &ResponseHead, output: &mut BytesMut) -> io::Result<usize> {
        match self {
            Self::Text(_) => {
                encode::response_head(head, output);
                Ok(0)
            }
            Self::Frames(frames) => frames.head(head).map(|()| head.headers.wire_length()),
        }
    }

    pub async fn send(&mut self, output: &mut BytesMut) -> io::Result<()> {
        match self {
            Self::Text(stream) => match stream.write_buf(output).await? {
                0 => Err(io::ErrorKind::WriteZero.into()),
                _ => Ok(()),
            },
            Self::Frames(frames) => frames.data(output).await,
        }
    }

    pub async fn flush(&mut self) -> io::Result<()> {
        match self {
            Self::Text(stream) => stream.flush().await,
            Self::Frames(_) => Ok(()),
        }
    }

    pub fn end(&mut self) -> io::Result<()> {
        match self {
            Self::Text(_) => Ok(()),
            Self::Frames(frames) => frames.end(),
        }
    }
}
