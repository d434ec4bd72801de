//! Where an answer goes: text on a connection, or frames of a stream; and the answers that are the
//! lab's own.

use crate::wire::streams::Frames;
use crate::wire::tls::inbound::Inbound;
use bytes::BytesMut;
use foxy_http::{ResponseHead, encode};
use std::io;
use tokio::io::AsyncWriteExt;

/// The head of an answer of the lab's own, which says something in plain text and is not to be
/// kept.
pub fn own(status: u16, text: &str) -> ResponseHead {
    let mut head = ResponseHead::new(status);
    head.headers.append("Content-Type", "text/plain");
    head.headers.append("Content-Length", text.len().to_string());
    head.headers.append("Cache-Control", "no-store");
    head.headers.append("Connection", "close");
    head
}

/// An answer as text.
pub fn as_text((head, text): &(ResponseHead, String)) -> BytesMut {
    let mut output = BytesMut::new();
    encode::response_head(head, &mut output);
    output.extend_from_slice(text.as_bytes());
    output
}

/// One of them.
#[derive(Debug)]
pub enum Out<'a> {
    /// HTTP/1: the connection ends where an answer does that has no other end.
    Text(&'a mut Inbound),
    /// HTTP/2: the stream ends with the answer.
    Frames(&'a mut Frames),
}

impl Out<'_> {
    /// Writes the head of an answer with a body to come, or an empty one: as text to `output`, else
    /// as frames. How many bytes it is beside that.
    ///
    /// # Errors
    /// When the stream is gone.
    pub fn head(&mut self, head: &ResponseHead, output: &mut BytesMut) -> io::Result<usize> {
        match self {
            Self::Text(_) => {
                encode::response_head(head, output);
                Ok(0)
            }
            Self::Frames(frames) => frames.head(head).map(|()| head.headers.wire_length()),
        }
    }

    /// Sends some of what there is to be sent, and takes it from `output`.
    ///
    /// # Errors
    /// When who asked is gone.
    pub async fn send(&mut self, output: &mut BytesMut) -> io::Result<()> {
        match self {
            Self::Text(stream) => match stream.write_buf(output).await? {
                0 => Err(io::ErrorKind::WriteZero.into()),
                _ => Ok(()),
            },
            Self::Frames(frames) => frames.data(output).await,
        }
    }

    /// All has been sent: sees to it that it leaves.
    ///
    /// # Errors
    /// When who asked is gone.
    pub async fn flush(&mut self) -> io::Result<()> {
        match self {
            Self::Text(stream) => stream.flush().await,
            Self::Frames(_) => Ok(()),
        }
    }

    /// The answer is whole.
    ///
    /// # Errors
    /// When the stream is gone.
    pub fn end(&mut self) -> io::Result<()> {
        match self {
            Self::Text(_) => Ok(()),
            Self::Frames(frames) => frames.end(),
        }
    }
}
