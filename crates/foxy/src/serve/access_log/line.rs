//! The three formats of the access log: Squid's, Apache's and JSON. Clients and origins choose some
//! texts, so foxy escapes them. No request can forge a line, a field or a terminal control
//! sequence.

use foxy_base::CivilTime;
use foxy_proxy::request::access::{AccessRecord, CutReason};
use foxy_proxy::request::cache_status::CacheStatus;
use foxy_proxy::request::reason::ErrorReason;
use foxy_proxy::upstream::{NodeSource, OriginTimes};
use std::io::Write;
use std::net::IpAddr;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum AccessFormat {
    /// Squid's native format: `%ts.%03tu %6tr %>a %Ss/%03>Hs %<st %rm %ru %[un %Sh/%<a %mt`.
    Squid,
    /// Apache's Combined: `%h %l %u %t "%r" %>s %b "%{Referer}i" "%{User-Agent}i"`.
    Combined,
    Json,
}

impl AccessFormat {
    pub fn named(name: &str) -> Option<Self> {
        match name {
            "squid" => Some(Self::Squid),
            "combined" => Some(Self::Combined),
            "json" => Some(Self::Json),
            _ => None,
        }
    }

    /// Appends the line for a finished request to `out`.
    pub fn write(self, line: &AccessRecord<'_>, out: &mut Vec<u8>) {
        let written = match self {
            Self::Squid => squid(line, out),
            Self::Combined => combined(line, out),
            Self::Json => json(line, out),
        };
        written.expect("a Vec takes all");
    }
}

/// Writes a line in Squid's format. Mostly avoids Rust's formatting macros, which are slower,
/// because workers run this code for every request.
fn squid(line: &AccessRecord<'_>, out: &mut Vec<u8>) -> std::io::Result<()> {
    decimal(line.end.seconds(), 1, b' ', out);
    out.push(b'.');
    decimal(line.end.0 % 1000, 3, b'0', out);
    out.push(b' ');
    decimal(u64::try_from(line.elapsed.as_millis()).unwrap_or(u64::MAX), 6, b' ', out);
    out.push(b' ');
    address(line.client.ip(), out)?;
    out.push(b' ');
    out.extend_from_slice(squid_code(line).as_bytes());
    out.extend_from_slice(squid_suffix(line.cut).as_bytes());
    out.push(b'/');
    decimal(line.status.into(), 3, b'0', out);
    out.push(b' ');
    decimal(line.bytes, 1, b' ', out);
    out.push(b' ');
    percent(line.method, out)?;
    out.push(b' ');
    url(line, percent, out)?;
    out.push(b' ');
    percent(line.user.unwrap_or_default().as_bytes(), out)?;
    out.push(b' ');
    out.extend_from_slice(hierarchy(line).as_bytes());
    out.push(b'/');
    percent(next_host(line), out)?;
    out.push(b' ');
    let kind = line.content_type.unwrap_or(b"");
    percent(kind.split(|byte| matches!(byte, b';' | b' ' | b'\t')).next().unwrap_or(b""), out)?;
    out.push(b'\n');
    Ok(())
}

/// Writes a number right-aligned in at least `width` columns.
fn decimal(number: u64, width: usize, fill: u8, out: &mut Vec<u8>) {
    let mut buffer = itoa::Buffer::new();
    let digits = buffer.format(number).as_bytes();
    (digits.len()..width).for_each(|_| out.push(fill));
    out.extend_from_slice(digits);
}

pub(super) fn address(address: IpAddr, out: &mut Vec<u8>) -> std::io::Result<()> {
    let IpAddr::V4(v4) = address else { return write!(out, "{address}") };
    for (index, octet) in v4.octets().into_iter().enumerate() {
        if index > 0 {
            out.push(b'.');
        }
        decimal(octet.into(), 1, b' ', out);
    }
    Ok(())
}

/// Returns Squid's hierarchy code, which says where foxy got the response. `CARP` means that a hash
/// of the URL chose the peer.
fn hierarchy(line: &AccessRecord<'_>) -> &'static str {
    match (line.outcome.hierarchy(), line.node) {
        ("HIER_DIRECT", Some(NodeSource::Cache)) => "SIBLING_HIT",
        ("HIER_DIRECT", Some(NodeSource::Origin)) => "CARP",
        ("HIER_DIRECT", None) if line.parent.is_some() => "FIRSTUP_PARENT",
        (code, _) => code,
    }
}

/// Returns the host to which foxy sent the request: a parent proxy, a server of the origin, or the
/// origin. Returns empty text if foxy did not forward the request.
fn next_host<'a>(line: &AccessRecord<'a>) -> &'a [u8] {
    if line.outcome.hierarchy() != "HIER_DIRECT" {
        return b"";
    }
    let server = line.parent.or(line.server.map(|(_, server)| server));
    let authority = server.map_or(line.authority(), str::as_bytes);
    match authority.iter().rposition(|byte| matches!(byte, b':' | b']')) {
        Some(at) if authority[at] == b':' => &authority[..at],
        _ => authority,
    }
}

/// Returns the suffix that Squid's result code gets if the response ended early.
pub(super) const fn squid_suffix(cut: Option<CutReason>) -> &'static str {
    match cut {
        None => "",
        Some(CutReason::ClientLeft) => "_ABORTED",
        Some(CutReason::BrokeOff) => "_BROKEN",
        Some(CutReason::Stopped) => "_STOPPED",
    }
}

/// Returns Squid's result code. A request that ended early, before the cache lookup, counts as a
/// miss.
pub(super) fn squid_code(line: &AccessRecord<'_>) -> &'static str {
    match line.outcome {
        CacheStatus::Local { .. } | CacheStatus::Error(ErrorReason::Upstream(_))
            if line.cut.is_some() =>
        {
            "TCP_MISS"
        }
        outcome => outcome.squid_code(),
    }
}

/// Returns the status code. As in nginx, 499 means that the client closed the connection early, and
/// 444 that foxy closed it.
const fn combined_status(line: &AccessRecord<'_>) -> u16 {
    match line.cut {
        Some(CutReason::ClientLeft) => 499,
        Some(CutReason::Stopped) => 444,
        Some(CutReason::BrokeOff) | None => line.status,
    }
}

/// Writes the absolute URL of the request, with `escape` applied to its parts.
pub(super) fn url(
    line: &AccessRecord<'_>,
    escape: fn(&[u8], &mut Vec<u8>) -> std::io::Result<()>,
    out: &mut Vec<u8>,
) -> std::io::Result<()> {
    let Some((scheme, host)) = line.site else { return escape(line.url, out) };
    write!(out, "{scheme}://")?;
    escape(host, out)?;
    if line.url == b"*" { Ok(()) } else { escape(line.url, out) }
}

/// Writes `text`. Each byte that is not visible ASCII becomes `%XX`. Empty text becomes `-`.
fn percent(text: &[u8], out: &mut Vec<u8>) -> std::io::Result<()> {
    if text.is_empty() {
        out.push(b'-');
    }
    for &byte in text {
        if byte.is_ascii_graphic() { out.push(byte) } else { write!(out, "%{byte:02X}")? }
    }
    Ok(())
}

fn combined(line: &AccessRecord<'_>, out: &mut Vec<u8>) -> std::io::Result<()> {
    let time = CivilTime::of(line.end);
    let month = MONTHS[usize::from(time.month) - 1];
    write!(out, "{} - ", line.client.ip())?;
    percent(line.user.unwrap_or_default().as_bytes(), out)?;
    write!(out, " [{:02}/{month}/{:04}:", time.day, time.year)?;
    write!(out, "{:02}:{:02}:{:02} +0000] \"", time.hour, time.minute, time.second)?;
    backslash(line.method, out)?;
    out.push(b' ');
    url(line, backslash, out)?;
    write!(out, " {}\" {:03} ", line.version, combined_status(line))?;
    if line.body_bytes == 0 {
        out.push(b'-')
    } else {
        write!(out, "{}", line.body_bytes)?
    }
    out.extend_from_slice(b" \"");
    backslash(line.referer.unwrap_or(b"-"), out)?;
    out.extend_from_slice(b"\" \"");
    backslash(line.user_agent.unwrap_or(b"-"), out)?;
    out.extend_from_slice(b"\"\n");
    Ok(())
}

/// Writes `text` as Apache does. Escapes quotes and backslashes, and writes each byte outside
/// printable ASCII as `\xhh`.
fn backslash(text: &[u8], out: &mut Vec<u8>) -> std::io::Result<()> {
    for &byte in text {
        match byte {
            b'"' | b'\\' => out.extend_from_slice(&[b'\\', byte]),
            b' '..=b'~' => out.push(byte),
            _ => write!(out, "\\x{byte:02x}")?,
        }
    }
    Ok(())
}

fn json(line: &AccessRecord<'_>, out: &mut Vec<u8>) -> std::io::Result<()> {
    let time = CivilTime::of(line.end);
    write!(out, "{{\"time\":\"{:04}-{:02}-{:02}T", time.year, time.month, time.day)?;
    write!(
        out,
        "{:02}:{:02}:{:02}.{:03}Z\"",
        time.hour,
        time.minute,
        time.second,
        line.end.0 % 1000
    )?;
    write!(
        out,
        ",\"elapsed_us\":{},\"client\":\"{}\"",
        line.elapsed.as_micros(),
        line.client.ip()
    )?;
    text("user", line.user.map(str::as_bytes), out)?;
    text("result", Some(&[squid_code(line), squid_suffix(line.cut)].concat().into_bytes()), out)?;
    text("cut", line.cut.map(|cut| cut.name().as_bytes()), out)?;
    write!(
        out,
        ",\"status\":{},\"bytes\":{},\"body_bytes\":{}",
        line.status, line.bytes, line.body_bytes
    )?;
    text("method", Some(line.method), out)?;
    let mut whole = Vec::new();
    url(line, |text, out| out.write_all(text), &mut whole)?;
    text("url", Some(&whole), out)?;
    text("version", Some(line.version.as_bytes()), out)?;
    text("hierarchy", Some(hierarchy(line).as_bytes()), out)?;
    text("content_type", line.content_type, out)?;
    text("referer", line.referer, out)?;
    text("user_agent", line.user_agent, out)?;
    text("cache_status", Some(line.outcome.to_string().as_bytes()), out)?;
    text("origin", line.server.map(|(origin, _)| origin.as_bytes()), out)?;
    text("server", line.server.map(|(_, server)| server.as_bytes()), out)?;
    text("rules", line.rules.map(str::as_bytes), out)?;
    text("parent", line.parent.map(str::as_bytes), out)?;
    text("id", Some(line.id.as_bytes()), out)?;
    text("outcome", Some(line.request_outcome.name().as_bytes()), out)?;
    if let Some(OriginTimes { connect, first_byte, .. }) = line.origin {
        let (connect, first_byte) = (connect.as_micros(), first_byte.as_micros());
        write!(out, ",\"origin_connect_us\":{connect},\"origin_ttfb_us\":{first_byte}")?;
    }
    out.extend_from_slice(b"}\n");
    Ok(())
}

/// Writes a JSON member whose value is a string in printable ASCII, or null if `value` is `None`.
/// Invalid UTF-8 becomes U+FFFD.
fn text(name: &str, value: Option<&[u8]>, out: &mut Vec<u8>) -> std::io::Result<()> {
    write!(out, ",\"{name}\":")?;
    let Some(value) = value else { return out.write_all(b"null") };
    out.push(b'"');
    for character in String::from_utf8_lossy(value).chars() {
        match character {
            '"' | '\\' => write!(out, "\\{character}")?,
            ' '..='~' => write!(out, "{character}")?,
            _ => {
                for unit in character.encode_utf16(&mut [0; 2]) {
                    write!(out, "\\u{unit:04x}")?;
                }
            }
        }
    }
    out.push(b'"');
    Ok(())
}

const MONTHS: [&str; 12] =
    ["Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec"];

#[cfg(test)]
#[path = "line_tests.rs"]
mod tests;
