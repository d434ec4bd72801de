//! Lays out a `multipart/byteranges` body (RFC 9110 §14.6): the bytes before, between and after the
//! ranges, and the total length. The bytes of the ranges themselves are not needed.

use crate::range::Span;

/// The layout of a body with several ranges.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Multipart {
    boundary: String,
    parts: Vec<(Vec<u8>, Span)>,
    length: u64,
}

impl Multipart {
    /// Lays out ranges of a body of `complete` bytes. Returns `None` if the layout is not shorter
    /// than the body. `random` has 128 bits for the boundary, so that no range contains the
    /// boundary by chance.
    pub fn new(
        spans: &[Span],
        complete: u64,
        content_type: Option<&[u8]>,
        random: (u64, u64),
    ) -> Option<Self> {
        let boundary = format!("{:016x}{:016x}", random.0, random.1);
        let mut parts = Vec::with_capacity(spans.len());
        let mut length: u64 = 0;
        for (number, span) in spans.iter().enumerate() {
            let line_end = if number == 0 { "" } else { "\r\n" };
            let mut head = format!("{line_end}--{boundary}\r\n").into_bytes();
            if let Some(content_type) = content_type {
                head.extend_from_slice(&[b"Content-Type: ", content_type, b"\r\n"].concat());
            }
            let range =
                format!("Content-Range: bytes {}-{}/{complete}\r\n\r\n", span.first, span.last);
            head.extend_from_slice(range.as_bytes());
            length = length.checked_add(head.len() as u64)?.checked_add(span.length())?;
            parts.push((head, *span));
        }
        let mut layout = Self { boundary, parts, length };
        layout.length = layout.length.checked_add(layout.end().len() as u64)?;
        (layout.length < complete).then_some(layout)
    }

    /// Returns the value of the answer's Content-Type field.
    pub fn content_type(&self) -> String {
        format!("multipart/byteranges; boundary={}", self.boundary)
    }

    /// Returns each range together with the bytes that precede it.
    pub fn parts(&self) -> impl Iterator<Item = (&[u8], Span)> {
        self.parts.iter().map(|(head, span)| (&head[..], *span))
    }

    /// Returns the bytes that follow the last range in the body.
    pub fn end(&self) -> Vec<u8> {
        format!("\r\n--{}--\r\n", self.boundary).into_bytes()
    }

    /// Returns the total length of the body in bytes.
    pub const fn length(&self) -> u64 {
        self.length
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_layout_is_that_of_the_rfc_and_as_long_as_it_says() {
        let spans = [Span { first: 500, last: 501 }, Span { first: 7, last: 7 }];
        let layout =
            Multipart::new(&spans, 8000, Some(b"application/pdf"), (1, 2)).expect("shorter");
        let mut body = Vec::new();
        for (head, span) in layout.parts() {
            body.extend_from_slice(head);
            body.extend(span_bytes(span));
        }
        body.extend_from_slice(&layout.end());
        let boundary = "00000000000000010000000000000002";
        let expected = format!(
            "--{boundary}\r\nContent-Type: application/pdf\r\nContent-Range: bytes 500-501/8000\r\n\r\nxx\r\n\
             --{boundary}\r\nContent-Type: application/pdf\r\nContent-Range: bytes 7-7/8000\r\n\r\nx\r\n\
             --{boundary}--\r\n"
        );
        assert_eq!(String::from_utf8_lossy(&body), expected);
        assert_eq!(layout.length(), body.len() as u64);
        assert_eq!(layout.content_type(), format!("multipart/byteranges; boundary={boundary}"));
    }

    fn span_bytes(span: Span) -> Vec<u8> {
        vec![b'x'; usize::try_from(span.length()).expect("small")]
    }

    #[test]
    fn what_is_no_shorter_than_the_whole_is_not_laid_out() {
        let spans = [Span { first: 0, last: 1 }, Span { first: 200, last: 201 }];
        let length = Multipart::new(&spans, 900, None, (1, 2)).expect("shorter").length();
        assert!(Multipart::new(&spans, length, None, (1, 2)).is_none());
        let all = [
            Span { first: 0, last: u64::MAX - 200 },
            Span { first: u64::MAX - 100, last: u64::MAX },
        ];
        assert!(Multipart::new(&all, u64::MAX, None, (1, 2)).is_none(), "no overflow");
    }
}
