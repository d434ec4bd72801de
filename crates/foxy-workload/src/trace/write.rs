//! Writes a trace as CSV or as Squid's access.log. Clients appear as numbers instead of names.

use super::Trace;
use std::borrow::Cow;
use std::io::{self, Write};

/// The format of a written trace.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum WriteFormat {
    /// CSV with the header `time,client,url,bytes`. Times are in seconds with six decimals.
    Csv,
    /// Squid's native access.log. Times are in seconds with three decimals.
    Squid,
}

/// Writes all GET requests. Calls `progress` with the number of requests written.
pub fn write(
    trace: &Trace,
    format: WriteFormat,
    out: &mut impl Write,
    progress: &mut dyn FnMut(u64),
) -> io::Result<()> {
    if format == WriteFormat::Csv {
        out.write_all(b"time,client,url,bytes\n")?;
    }
    for (done, get) in (1..).zip(&trace.gets) {
        let time = i128::from(trace.start) + i128::from(get.time);
        let (sign, micros) = (if time < 0 { "-" } else { "" }, time.unsigned_abs());
        let (seconds, micros) = (micros / 1_000_000, micros % 1_000_000);
        let (client, url, size) = (get.client, trace.url_text(get.url), get.size);
        match format {
            WriteFormat::Csv => {
                writeln!(out, "{sign}{seconds}.{micros:06},{client},{},{size}", quoted(&url))?;
            }
            WriteFormat::Squid => {
                let millis = micros / 1000;
                let url = url.replace(|c: char| c.is_ascii_whitespace(), "%20");
                writeln!(
                    out,
                    "{sign}{seconds}.{millis:03} 0 {client} TCP_MISS/200 {size} GET {url} - HIER_NONE/- -"
                )?;
            }
        }
        progress(done);
    }
    out.flush()
}

fn quoted(text: &str) -> Cow<'_, str> {
    if text.contains([',', '"', ';', '\t']) || text.trim() != text {
        Cow::Owned(format!("\"{}\"", text.replace('"', "\"\"")))
    } else {
        Cow::Borrowed(text)
    }
}
