//! How much a peer may make us hold before a message is refused. Timeouts are not here: they belong
//! to the shell.

/// The most a decoder accepts of each part. All sizes in bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Limits {
    /// A whole head: first line, header lines and the empty line. At most `u32::MAX`.
    pub head: usize,
    /// The first line of a request, with its CRLF. RFC 9112 §3 asks for at least 8000.
    pub request_line: usize,
    /// Header lines in a head, and again in a trailer section.
    pub headers: usize,
    /// Chunk extensions, one line and one body alike (they are skipped, never forwarded).
    pub chunk_extensions: usize,
    /// A trailer section with its empty line. At most `u32::MAX`.
    pub trailers: usize,
    /// 1xx responses before the final one.
    pub interim_responses: usize,
}

impl Default for Limits {
    fn default() -> Self {
        Self {
            head: 64 << 10,
            request_line: 32 << 10,
            headers: 256,
            chunk_extensions: 4 << 10,
            trailers: 16 << 10,
            interim_responses: 32,
        }
    }
}
