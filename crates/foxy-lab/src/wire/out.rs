//! The receiver of an answer: a connection that gets HTTP/1 text, or an HTTP/2 stream that gets
//! frames. Also builds short answers of the lab itself.

use crate::wire::http2::Frames;
use crate::wire::tls::inbound::Inbound;
use bytes::BytesMut;
use foxy_http::{ResponseHead, encode};
use std::io;
use tokio::io::AsyncWriteExt;

/// A plain-text answer that the lab itself writes, such as a refusal. Caches must not store it.
pub struct OwnAnswer {
    pub head: ResponseHead,
    pub text: String,
}

impl OwnAnswer {
    pub fn new(status: u16, text: String) -> Self {
        let mut head = ResponseHead::new(status);
        head.headers.append("Content-Type", "text/plain");
        head.headers.append("Content-Length", text.len().to_string());
        head.headers.append("Cache-Control", "no-store");
        head.headers.append("Connection", "close");
        Self { head, text }
    }

    /// Returns the whole answer as HTTP/1 text.
    pub fn to_bytes(&self) -> BytesMut {
        let mut output = BytesMut::new();
        encode::response_head(&self.head, &mut output);
        output.extend_from_slice(self.text.as_bytes());
        output
    }
}

#[derive(Debug)]
pub enum AnswerSink<'a> {
    Text(&'a mut Inbound),
    Frames(&'a mut Frames),
}

impl AnswerSink<'_> {
    /// Writes the head as text to `output`, or sends it as HTTP/2 frames. Returns the number of
    /// bytes sent as frames.
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
