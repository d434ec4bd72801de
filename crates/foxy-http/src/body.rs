//! The state of a message body while it is read, the same for requests and responses.

use crate::chunked::{ChunkedDecoder, Padding};
use crate::error::DecodeError;
use crate::framing::BodyLength;
use crate::headers::Headers;
use crate::limits::Limits;
use bytes::{Bytes, BytesMut};

/// A part of a body.
pub(crate) enum BodyEvent {
    Data(Bytes),
    Trailers(Headers),
    End,
}

/// What is left of a body.
#[derive(Debug)]
pub(crate) enum BodyDecoder {
    Left(u64),
    Chunked(ChunkedDecoder),
    UntilClose,
}

impl BodyDecoder {
    pub(crate) fn new(length: BodyLength, padding: Padding) -> Self {
        match length {
            BodyLength::None | BodyLength::Tunnel => Self::Left(0),
            BodyLength::Length(bytes) => Self::Left(bytes),
            BodyLength::Chunked => Self::Chunked(ChunkedDecoder::new(padding)),
            BodyLength::UntilClose => Self::UntilClose,
        }
    }

    pub(crate) fn next(
        &mut self,
        buffer: &mut BytesMut,
        arena: &mut BytesMut,
        limits: &Limits,
    ) -> Result<Option<BodyEvent>, DecodeError> {
        let length = match self {
            Self::Left(0) => return Ok(Some(BodyEvent::End)),
            Self::Chunked(chunked) => return chunked.next(buffer, arena, limits),
            _ if buffer.is_empty() => return Ok(None),
            Self::UntilClose => buffer.len(),
            Self::Left(left) => {
                let length = usize::try_from(*left).unwrap_or(usize::MAX).min(buffer.len());
                *left -= length as u64;
                length
            }
        };
        Ok(Some(BodyEvent::Data(buffer.split_to(length).freeze())))
    }
}
