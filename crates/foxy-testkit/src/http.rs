//! Writes and reads HTTP/1.1 messages as text, for scripted origins and for checks of responses.

use std::io::Read;

/// Returns a complete 200 response with `body`. Each header line in `lines` must end with CRLF.
pub fn ok(lines: &str, body: &[u8]) -> Vec<u8> {
    let head = format!("HTTP/1.1 200 OK\r\n{lines}Content-Length: {}\r\n\r\n", body.len());
    [head.as_bytes(), body].concat()
}

/// Returns the value of the first header `name` in `head`.
pub fn header<'a>(head: &'a str, name: &str) -> Option<&'a str> {
    let lines = head.lines().skip(1).take_while(|line| !line.is_empty());
    let mut found = lines
        .filter_map(|line| line.split_once(':'))
        .filter(|(key, _)| key.eq_ignore_ascii_case(name));
    found.next().map(|(_, value)| value.trim())
}

/// Returns the length in bytes of the head at the start of `bytes`, with its empty line.
pub fn head_length(bytes: &[u8]) -> Option<usize> {
    bytes.windows(4).position(|window| window == b"\r\n\r\n").map(|start| start + 4)
}

/// Reads a head with its empty line, and no byte after it. Returns `None` if the stream ends early.
pub fn read_head(stream: &mut impl Read) -> Option<String> {
    let (mut head, mut byte) = (Vec::new(), [0]);
    while !head.ends_with(b"\r\n\r\n") {
        stream.read_exact(&mut byte).ok()?;
        head.push(byte[0]);
    }
    Some(String::from_utf8_lossy(&head).into_owned())
}

/// Reads a head, and a body of the length in its Content-Length. Returns `None` if the stream ends
/// early.
pub fn read_request(stream: &mut impl Read) -> Option<String> {
    let head = read_head(stream)?;
    let length = header(&head, "content-length").and_then(|length| length.parse().ok());
    let mut body = vec![0; length.unwrap_or(0)];
    stream.read_exact(&mut body).ok()?;
    Some(head + &String::from_utf8_lossy(&body))
}
