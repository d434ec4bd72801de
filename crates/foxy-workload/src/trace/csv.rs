//! Parses CSV with commas, semicolons or tabs. Finds columns by the names in the header line; the
//! Parquet reader uses the same names. Each line is a row. A quoted field must not contain line
//! breaks, although RFC 4180 permits them. If it could, a single missing quote would swallow the
//! rest of the file.

use super::report::ReadError;
use super::skip::{self, Answer, Entry, Skip};
use foxy_base::log_time;
use std::borrow::Cow;

/// Parses the rows of one file.
#[derive(Clone, Debug)]
pub(super) struct Csv {
    separator: u8,
    columns: Columns,
}

impl Csv {
    /// Parses the header line, which must name time, URL and size.
    pub(super) fn new(header: &str) -> Result<Self, ReadError> {
        let count = |separator: &u8| header.bytes().filter(|byte| byte == separator).count();
        let separator =
            *b",;\t".iter().rev().max_by_key(|separator| count(separator)).expect("three");
        let names = split(header.trim_start_matches('\u{feff}'), separator)
            .map_err(|_| ReadError::NoColumn("time"))?;
        let columns = Columns::find(names.iter().map(AsRef::as_ref))?;
        Ok(Self { separator, columns })
    }

    /// Parses a row and passes it to `take`.
    pub(super) fn parse<T>(
        &self,
        line: &str,
        take: impl FnOnce(Entry<'_>) -> Result<T, Skip>,
    ) -> Result<T, Skip> {
        let fields = split(line, self.separator)?;
        let optional = |column| {
            let Some(place) = self.columns.place(column) else { return Ok(None) };
            let field: &str = fields.get(place).ok_or(Skip::MissingField)?;
            Ok(Some(if matches!(column, Column::Url | Column::Client) {
                field
            } else {
                field.trim()
            }))
        };
        let needed = |column| optional(column).and_then(|field| field.ok_or(Skip::MissingField));
        let time = log_time::parse(needed(Column::Time)?).ok_or(Skip::BadTime)?;
        let url = skip::url(needed(Column::Url)?)?;
        let size = needed(Column::Bytes)?;
        let client = optional(Column::Client)?.unwrap_or("");
        let answer = match (optional(Column::Method)?, optional(Column::Status)?) {
            (None, None) => Answer::Whole(skip::bytes(size)?),
            (method, status) => {
                skip::answer(method.unwrap_or("GET"), status.unwrap_or("200"), size)?
            }
        };
        take(Entry { time, client, url, answer })
    }
}

/// Splits a line into fields and removes their quotes. In a quoted field, two quotes mean one
/// quote.
fn split(line: &str, separator: u8) -> Result<Vec<Cow<'_, str>>, Skip> {
    let mut fields = Vec::with_capacity(8);
    let mut rest = line;
    loop {
        let end = end_of_field(rest, separator)?;
        let field = &rest[..end];
        let inner = field.strip_prefix('"').and_then(|field| field.strip_suffix('"'));
        fields.push(match inner {
            Some(inner) if inner.contains("\"\"") => Cow::Owned(inner.replace("\"\"", "\"")),
            Some(inner) => Cow::Borrowed(inner),
            None => Cow::Borrowed(field),
        });
        match rest.get(end + 1..) {
            Some(next) => rest = next,
            None => return Ok(fields),
        }
    }
}

/// Returns the position of the next separator outside quotes, or the end of the line.
fn end_of_field(text: &str, separator: u8) -> Result<usize, Skip> {
    if !text.starts_with('"') {
        return Ok(text.bytes().position(|byte| byte == separator).unwrap_or(text.len()));
    }
    let mut quoted = true;
    for (at, byte) in text.bytes().enumerate().skip(1) {
        match byte {
            b'"' => quoted = !quoted,
            _ if byte == separator && !quoted => return Ok(at),
            _ => {}
        }
    }
    if quoted { Err(Skip::OpenQuote) } else { Ok(text.len()) }
}

/// The meaning of a column.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Column {
    Time,
    /// Name of the client. This column is optional. Without it, all requests have one client.
    Client,
    Url,
    Bytes,
    /// Method of the request. This column is optional. Without it, all requests are GET.
    Method,
    /// Status of the response. This column is optional. Without it, all responses have the status
    /// 200.
    Status,
}

/// Known column names by meaning. The most usual name of each meaning is first.
const NAMES: [(Column, &[&str]); 6] = [
    (Column::Time, &["time", "timestamp", "ts", "date", "datetime"]),
    (Column::Client, &["client", "client_ip", "clientip", "remote_addr", "host_ip", "user"]),
    (Column::Url, &["url", "uri", "request_url", "key", "object", "path"]),
    (
        Column::Bytes,
        &["bytes", "size", "body_bytes_sent", "bytes_sent", "response_bytes", "object_size"],
    ),
    (Column::Method, &["method", "request_method", "verb"]),
    (Column::Status, &["status", "status_code", "response_status", "code"]),
];

/// The position of each known column.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Columns {
    places: [Option<usize>; 6],
}

impl Columns {
    /// Finds the columns in any order and any case. Returns an error if time, URL or size has no
    /// column.
    pub(super) fn find<'a>(
        names: impl Iterator<Item = &'a str> + Clone,
    ) -> Result<Self, ReadError> {
        let place = |known: &[&str]| {
            known.iter().find_map(|known| {
                names.clone().position(|name| name.trim().eq_ignore_ascii_case(known))
            })
        };
        let columns = Self { places: NAMES.map(|(_, known)| place(known)) };
        for needed in [Column::Time, Column::Url, Column::Bytes] {
            if columns.place(needed).is_none() {
                return Err(ReadError::NoColumn(NAMES[needed as usize].1[0]));
            }
        }
        Ok(columns)
    }

    pub(super) fn place(&self, column: Column) -> Option<usize> {
        self.places[column as usize]
    }

    #[cfg(feature = "parquet")]
    pub(super) fn used(&self) -> impl Iterator<Item = usize> + '_ {
        self.places.iter().flatten().copied()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(header: &str, line: &str, expected: Result<(i64, &str, &str, Answer), Skip>) {
        let csv = Csv::new(header).expect("a header");
        let own = |entry: Entry<'_>| {
            Ok((entry.time, entry.client.to_string(), entry.url.to_string(), entry.answer))
        };
        let expected =
            expected.map(|(time, client, url, answer)| (time, client.into(), url.into(), answer));
        assert_eq!(csv.parse(line, own), expected, "{line}");
    }

    #[test]
    fn rows_are_gets_or_have_a_reason() {
        let boston = "time,client,url,bytes,origin_seconds";
        let whole = Answer::Whole;
        check(
            boston,
            "1.5,272-8,http://a/,1934,0.53",
            Ok((1_500_000, "272-8", "http://a/", whole(1934))),
        );
        check(
            boston,
            r#"1,c,"http://a/?x=1,2""q""",9,0"#,
            Ok((1_000_000, "c", "http://a/?x=1,2\"q\"", whole(9))),
        );
        check(boston, " 1, c ,http://a/ , 2,0", Ok((1_000_000, " c ", "http://a/ ", whole(2))));
        check(boston, "1,c,http://a/", Err(Skip::MissingField));
        check(boston, "1,c,http://a/,x,", Err(Skip::BadSize));
        check(boston, ",c,http://a/,5,", Err(Skip::BadTime));
        check(boston, "1,c,,5,", Err(Skip::NoUrl));
        let full = "\u{feff}Status;Method;Size;URL;Timestamp";
        check(
            full,
            "200;GET;7;http://a/;1970-01-01T00:00:01Z",
            Ok((1_000_000, "", "http://a/", whole(7))),
        );
        check(full, "304;GET;0;http://a/;1", Ok((1_000_000, "", "http://a/", Answer::NotModified)));
        check(full, "200;PATCH;7;http://a/;1", Err(Skip::NotGet));
        check(full, "500;GET;7;http://a/;1", Err(Skip::StatusNotUsed));
    }

    #[test]
    fn quoted_fields_are_split_and_an_open_quote_breaks_the_line() {
        let split = |line| split(line, b',').map(|fields| fields.join("|"));
        assert_eq!(split("\"a,\"\"b\",c"), Ok("a,\"b|c".into()));
        assert_eq!(split("a,,"), Ok("a||".into()));
        assert_eq!(split("\"a,b,c"), Err(Skip::OpenQuote));
        assert_eq!(split("\""), Err(Skip::OpenQuote));
    }

    #[test]
    fn columns_are_found_in_any_order_and_case() {
        for (number, (column, _)) in NAMES.iter().enumerate() {
            assert_eq!(*column as usize, number);
        }
        let columns = Columns::find(["Size", "x", " URL", "timestamp"].into_iter())
            .expect("all that is needed");
        let places =
            [Column::Time, Column::Url, Column::Bytes, Column::Client].map(|c| columns.place(c));
        assert_eq!(places, [Some(3), Some(2), Some(0), None]);
        #[cfg(feature = "parquet")]
        assert_eq!(columns.used().collect::<Vec<_>>(), [3, 2, 0]);
    }

    #[test]
    fn a_missing_column_is_named() {
        let error = Columns::find(["time", "bytes"].into_iter()).expect_err("no URL");
        assert!(matches!(error, ReadError::NoColumn("url")), "{error}");
    }
}
