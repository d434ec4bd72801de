//! Builds raw HTTP/2 frames (RFC 9113 §6) for test peers that break the protocol. Libraries refuse
//! to send such frames.

/// Types of HTTP/2 frames (RFC 9113 §6).
#[expect(missing_docs, reason = "the names of RFC 9113")]
pub mod kind {
    pub const DATA: u8 = 0;
    pub const HEADERS: u8 = 1;
    pub const PRIORITY: u8 = 2;
    pub const RST_STREAM: u8 = 3;
    pub const SETTINGS: u8 = 4;
    pub const PUSH_PROMISE: u8 = 5;
    pub const PING: u8 = 6;
    pub const GOAWAY: u8 = 7;
    pub const WINDOW_UPDATE: u8 = 8;
    pub const CONTINUATION: u8 = 9;
}

/// Flag of DATA and HEADERS frames: the sender sends nothing more on this stream.
pub const END_STREAM: u8 = 1;

/// Flag of HEADERS and CONTINUATION frames: the block of header fields is complete.
pub const END_HEADERS: u8 = 4;

/// The first bytes that a client sends on a connection (RFC 9113 §3.4).
pub const PREFACE: &[u8] = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n";

/// Returns the bytes of one frame.
pub fn frame(kind: u8, flags: u8, stream: u32, payload: &[u8]) -> Vec<u8> {
    let length = u32::try_from(payload.len()).expect("a short payload").to_be_bytes();
    [&length[1..], &[kind, flags], &stream.to_be_bytes(), payload].concat()
}

/// Encodes a header field as an HPACK literal without indexing (RFC 7541 §6.2.2). Panics if `name`
/// or `value` has 127 bytes or more.
pub fn field(name: &str, value: &str) -> Vec<u8> {
    let length = |text: &str| {
        u8::try_from(text.len()).ok().filter(|&length| length < 127).expect("a short text")
    };
    [&[0, length(name)], name.as_bytes(), &[length(value)], value.as_bytes()].concat()
}

/// Encodes `fields` as an HPACK field block.
pub fn block(fields: &[(&str, &str)]) -> Vec<u8> {
    fields.iter().flat_map(|(name, value)| field(name, value)).collect()
}

/// Encodes the field block of a GET request for an `http` URL.
pub fn get_block(authority: &str, path: &str) -> Vec<u8> {
    block(&[(":method", "GET"), (":scheme", "http"), (":authority", authority), (":path", path)])
}
