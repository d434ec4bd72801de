//! Generates valid requests and responses of all usual kinds, then damages some bytes. Most damage
//! concerns framing: where a message ends.

use foxy_base::Random;

/// Strings that are typical of framing attacks. `damage` inserts them.
const SPICE: [&str; 48] = [
    ";\x01",
    ";a=\x7f",
    "0000000000000000",
    "\r\n\r\n\r\n\r\n\r\n\r\n\r\n\r\n\r\n",
    "\r\n",
    "\n",
    "\r",
    " ",
    "\t",
    "\0",
    ":",
    ",",
    ";",
    "\"",
    "0",
    "a",
    "\x7f",
    "\x0b",
    "{",
    "|",
    "#",
    "?",
    "%",
    "é",
    "chunked",
    "gzip",
    "identity",
    "close",
    "+",
    "-",
    "\r\n ",
    "\r\n\t",
    "0\r\n\r\n",
    "1\r\nx\r\n",
    "Content-Length: 3\r\n",
    "Content-Length: 5, 5\r\n",
    "Transfer-Encoding: chunked\r\n",
    "Transfer-Encoding: gzip, chunked\r\n",
    "Transfer-Encoding : chunked\r\n",
    "Host: g\r\n",
    "Connection: close\r\n",
    "Connection: keep-alive\r\n",
    "X: a\r\n b\r\n",
    " HTTP/1.0",
    "HTTP/1.1",
    "http://",
    "@",
    "[::1]",
];

const METHODS: [&str; 9] =
    ["GET", "HEAD", "POST", "PUT", "OPTIONS", "DELETE", "PURGE", "M-SEARCH", "get"];

const TARGETS: [&str; 14] = [
    "/",
    "/a/b.c?d=e&f",
    "//x",
    "/{a}",
    "/\"|^`<>\\",
    "/a#b",
    "/%00",
    "/a?b?c",
    "http://h/",
    "http://h",
    "http://h:80/p?q",
    "https://h_1.example/",
    "HTTP://H/",
    "/:@!$&'()*+,;=-._~",
];

const LINES: [&str; 16] = [
    "Accept: */*",
    "X: y",
    "x: z",
    "X:",
    "X: \t y  ",
    "Cookie: a=b; c=d",
    "Cookie: e=f",
    "Expect: 100-continue",
    "Connection: keep-alive",
    "Connection: X",
    "TE: trailers",
    "A-Very_Long.Name~!#$%&'*+^`|: v",
    "X: \u{e9}\u{fc}",
    "If-None-Match: \"a, b\"",
    "Content-Type: text/plain; charset=\"x\"",
    "Via: 1.1 a (b)",
];

const STATUSES: [&str; 14] = [
    "200 OK",
    "200 ",
    "200",
    "206 Partial Content",
    "204 No Content",
    "304 Not Modified",
    "404 Not Found",
    "500 X Y",
    "301 Moved",
    "299 \u{e9}",
    "100 Continue",
    "103 Early Hints",
    "101 Switching",
    "416 Z",
];

fn pick<'a>(random: &mut Random, list: &[&'a str]) -> &'a str {
    list[random.below(list.len() as u64) as usize]
}

/// Generates one to three requests for one connection.
pub fn requests(random: &mut Random) -> Vec<u8> {
    let mut out = Vec::new();
    for _ in 0..=random.below(3) {
        request(random, &mut out);
    }
    damage(random, &mut out);
    out
}

/// Generates a response, sometimes with interim responses before it.
pub fn response(random: &mut Random) -> Vec<u8> {
    let mut out = Vec::new();
    while random.chance(0.15) {
        out.extend_from_slice(b"HTTP/1.1 103 Early Hints\r\nLink: </a>\r\n\r\n");
    }
    let version = if random.chance(0.1) { "HTTP/1.0" } else { "HTTP/1.1" };
    out.extend_from_slice(format!("{version} {}\r\n", pick(random, &STATUSES)).as_bytes());
    header_lines(random, &mut out);
    body(random, &mut out);
    damage(random, &mut out);
    out
}

fn request(random: &mut Random, out: &mut Vec<u8>) {
    let version = if random.chance(0.1) { "HTTP/1.0" } else { "HTTP/1.1" };
    let line = format!("{} {} {version}\r\n", pick(random, &METHODS), pick(random, &TARGETS));
    out.extend_from_slice(line.as_bytes());
    if random.chance(0.97) {
        out.extend_from_slice(b"Host: h\r\n");
    }
    header_lines(random, out);
    body(random, out);
}

fn header_lines(random: &mut Random, out: &mut Vec<u8>) {
    for _ in 0..random.below(4) {
        out.extend_from_slice(pick(random, &LINES).as_bytes());
        out.extend_from_slice(b"\r\n");
    }
}

/// Writes the framing headers, the empty line, and a body that matches them.
fn body(random: &mut Random, out: &mut Vec<u8>) {
    let data = &b"0123456789\r\n\r\nabcdef"[..random.below(20) as usize];
    match random.below(4) {
        0 => out.extend_from_slice(b"\r\n"),
        1 => {
            out.extend_from_slice(format!("Content-Length: {}\r\n\r\n", data.len()).as_bytes());
            out.extend_from_slice(data);
        }
        _ => chunks(random, data, out),
    }
}

fn chunks(random: &mut Random, data: &[u8], out: &mut Vec<u8>) {
    let name =
        if random.chance(0.2) { "transfer-encoding:CHUNKED" } else { "Transfer-Encoding: chunked" };
    out.extend_from_slice(format!("{name}\r\n\r\n").as_bytes());
    for chunk in data.chunks(1 + random.below(12) as usize) {
        let extension = pick(random, &["", "", "", ";a", " ;a=b", ";a=\"b;c\"", "  "]);
        let zeros = pick(random, &["", "", "0", "000"]);
        out.extend_from_slice(format!("{zeros}{:x}{extension}\r\n", chunk.len()).as_bytes());
        out.extend_from_slice(chunk);
        out.extend_from_slice(b"\r\n");
    }
    let trailers = pick(
        random,
        &["", "", "X-Sum: 1\r\n", "A: b\r\na: c\r\n", "Content-Length: 9\r\n", "X:\r\n"],
    );
    out.extend_from_slice(format!("0\r\n{trailers}\r\n").as_bytes());
}

/// Makes up to three random changes. A change removes, replaces or doubles a byte, inserts an
/// attack string, doubles a line, or cuts off the end.
fn damage(random: &mut Random, bytes: &mut Vec<u8>) {
    for _ in 0..random.below(4) {
        let place = random.below(bytes.len().max(1) as u64) as usize;
        let spice = pick(random, &SPICE).as_bytes();
        match random.below(9) {
            _ if bytes.is_empty() => return,
            0 => drop(bytes.remove(place)),
            1 => bytes[place] = spice[0],
            2 => bytes.insert(place, bytes[place]),
            3 => bytes.truncate(place),
            4 => double_line(bytes, place),
            5 | 6 => drop(bytes.splice(place..place, spice.iter().copied())),
            _ => {
                let start = line_start(bytes, place);
                drop(bytes.splice(start..start, spice.iter().copied()));
            }
        }
    }
}

fn line_start(bytes: &[u8], place: usize) -> usize {
    bytes[..place].iter().rposition(|&byte| byte == b'\n').map_or(0, |end| end + 1)
}

fn double_line(bytes: &mut Vec<u8>, place: usize) {
    let start = line_start(bytes, place);
    let end = bytes[place..]
        .iter()
        .position(|&byte| byte == b'\n')
        .map_or(bytes.len(), |end| place + end + 1);
    let line = bytes[start..end].to_vec();
    drop(bytes.splice(start..start, line));
}
