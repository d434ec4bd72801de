//! Tests the readers of logs. All formats must give the same trace, the report must count every
//! broken line, and no input may cause a panic.

use foxy_workload::trace::write::{self, WriteFormat};
use foxy_workload::trace::{Format, ReadError, ReadReport, Skip, Trace, read};
use proptest::prelude::*;
use std::io::{self, Read};

const SQUID: &[u8] = include_bytes!("data/squid.log");
const COMBINED: &[u8] = include_bytes!("data/combined.log");
const CSV: &[u8] = include_bytes!("data/table.csv.gz");
const PARQUET: &[u8] = include_bytes!("data/table.parquet");

fn read_bytes(bytes: &[u8], format: Option<Format>) -> Result<(Trace, ReadReport), ReadError> {
    read(bytes, format, &mut |_| {})
}

/// Returns the requests of a trace as time, client, URL and size.
fn gets(trace: &Trace) -> Vec<(u64, u32, String, u64)> {
    trace
        .gets
        .iter()
        .map(|get| (get.time, get.client, trace.url_text(get.url).into_owned(), get.size))
        .collect()
}

#[test]
fn every_format_is_guessed_and_gives_the_same_gets() {
    let (expected, _) = read_bytes(SQUID, None).expect("Squid");
    assert_eq!((expected.gets.len(), expected.start), (8, 1_000_000_000_000_000));
    assert_eq!((expected.urls(), expected.clients, expected.site_count), (5, 3, 3));
    assert_eq!(expected.gets[4].size, 1800, "a 304 has the size that came before");
    let expected = gets(&expected);
    for (bytes, format, packed) in
        [(SQUID, Format::Squid, false), (CSV, Format::Csv, true), (PARQUET, Format::Parquet, false)]
    {
        let (trace, report) = read_bytes(bytes, None).expect("a known format");
        assert_eq!((report.format, report.packed), (format, packed));
        assert_eq!(gets(&trace), expected, "{format}");
    }
    let whole_seconds = expected
        .into_iter()
        .map(|(time, client, url, size)| (time / 1_000_000 * 1_000_000, client, url, size));
    let (trace, report) = read_bytes(COMBINED, None).expect("Combined");
    assert_eq!(report.format, Format::Common);
    assert_eq!(gets(&trace), whole_seconds.collect::<Vec<_>>());
}

#[test]
fn lines_that_give_no_get_are_counted_by_reason() {
    for (bytes, broken) in [
        (SQUID, Skip::MissingField),
        (COMBINED, Skip::MissingField),
        (CSV, Skip::MissingField),
        (PARQUET, Skip::BadTime),
    ] {
        let (_, report) = read_bytes(bytes, None).expect("a known format");
        assert_eq!((report.lines, report.gets), (11, 8), "{}", report.format);
        let reasons: Vec<_> = report.reasons().collect();
        assert_eq!(reasons.len(), 3, "{reasons:?}");
        for reason in [broken, Skip::NotGet, Skip::StatusNotUsed] {
            assert_eq!(report.skipped(reason), 1, "{}: {reason}", report.format);
        }
        assert_eq!(report.examples.len(), 1);
        assert_eq!((report.examples[0].line, report.examples[0].reason), (11, broken));
    }
}

#[test]
fn a_packed_log_that_was_cut_off_gives_what_stands_before_the_cut() {
    let (_, report) = read_bytes(&CSV[..CSV.len() - 10], None).expect("most of it");
    assert!(report.gets > 0, "{report:?}");
    assert_eq!(report.skipped(Skip::Damaged), 1);
}

#[test]
fn a_flipped_bit_in_a_packed_log_is_an_error() {
    for at in [30, CSV.len() / 2, CSV.len() - 6] {
        let mut bytes = CSV.to_vec();
        bytes[at] ^= 4;
        let outcome = read_bytes(&bytes, Some(Format::Csv));
        assert!(!matches!(&outcome, Ok((_, report)) if report.skipped(Skip::Damaged) == 0));
    }
    let mut bytes = CSV.to_vec();
    *bytes.iter_mut().rev().nth(6).expect("a checksum") ^= 1;
    let error = read_bytes(&bytes, None).expect_err("the checksum differs");
    assert!(matches!(error, ReadError::Corrupt(_)), "{error}");
}

#[test]
fn oracle_general_records_become_gets() {
    let records = [(1_000_000_000u32, 7u64, 300u32, 2i64), (1_000_000_001, 8, 50, -1)];
    let records = records.into_iter().chain([(1_000_000_001, 7, 300, i64::MAX)]);
    let mut bytes = Vec::new();
    for (time, object, size, next) in records {
        bytes.extend(time.to_le_bytes());
        bytes.extend(object.to_le_bytes());
        bytes.extend(size.to_le_bytes());
        bytes.extend(next.to_le_bytes());
    }
    let (trace, report) = read_bytes(&bytes, None).expect("guessed");
    assert_eq!((report.format, report.gets), (Format::OracleGeneral, 3));
    let url = |number| format!("http://oracle-general.test/{number}");
    let expected = [(0, 0, url(7), 300), (1_000_000, 0, url(8), 50), (1_000_000, 0, url(7), 300)];
    assert_eq!(gets(&trace), expected);
    bytes.truncate(bytes.len() - 1);
    let (_, report) = read_bytes(&bytes, None).expect("most of it");
    assert_eq!((report.gets, report.skipped(Skip::Damaged)), (2, 1));
}

#[test]
fn a_damaged_table_is_refused_or_ends_early() {
    let mut random = foxy_base::Random::new(3);
    for change in 0..3000 {
        let mut bytes = PARQUET.to_vec();
        let at = usize::try_from(random.below(bytes.len() as u64)).expect("an index");
        bytes[at] = bytes[at].wrapping_add(1 + u8::try_from(random.below(255)).expect("a byte"));
        if let Ok((_, report)) = read_bytes(&bytes, Some(Format::Parquet)) {
            let counted: u64 = report.reasons().map(|(_, count)| count).sum();
            assert_eq!(report.lines, report.gets + counted, "change {change} at {at}");
        }
    }
}

#[test]
fn a_line_without_end_costs_one_line() {
    let mut bytes = SQUID.to_vec();
    bytes.extend(std::iter::repeat_n(b'x', 3 << 20));
    bytes.extend(b"\n1000000070.000 1 c TCP_HIT/200 5 GET http://a.test/ - - -\n");
    let (_, report) = read_bytes(&bytes, None).expect("Squid");
    assert_eq!((report.gets, report.skipped(Skip::TooLong)), (9, 1));
}

#[test]
fn what_is_written_reads_back() {
    let (trace, _) = read_bytes(CSV, None).expect("CSV");
    for format in [WriteFormat::Csv, WriteFormat::Squid] {
        let mut out = Vec::new();
        write::write(&trace, format, &mut out, &mut |_| {}).expect("memory");
        let (back, report) = read_bytes(&out, None).expect("our own");
        assert_eq!((report.lines, report.gets), (8, 8), "{format:?}");
        assert_eq!(back.start, trace.start);
        assert_eq!(gets(&back), gets(&trace), "{format:?}");
    }
}

#[test]
fn files_that_are_no_trace_say_what_would_be_right() {
    for (bytes, format, expected) in [
        (&b"hello\nworld\n"[..], None, "known format"),
        (b"", None, "the file is empty"),
        (b"time,size\n1,2\n", Some(Format::Csv), "no column url"),
        (b"", Some(Format::Csv), "no column time"),
        (b"PAR1", None, "Parquet"),
        (b"BZh91AY", None, "bzip2 -dc"),
        (b"PK\x03\x04rest", None, "unzip -p"),
        (include_bytes!("data/zstd.parquet"), None, "compressed with ZSTD"),
    ] {
        let error = read_bytes(bytes, format).expect_err("nothing to read").to_string();
        assert!(error.contains(expected), "{error}");
    }
}

/// A reader that returns some bytes, then the error of a failing disk.
struct Failing<'a>(&'a [u8]);

impl Read for Failing<'_> {
    fn read(&mut self, out: &mut [u8]) -> io::Result<usize> {
        if self.0.is_empty() { Err(io::Error::from_raw_os_error(5)) } else { self.0.read(out) }
    }
}

#[test]
fn a_disk_that_fails_is_an_error_and_not_a_broken_line() {
    for bytes in [SQUID, &CSV[..CSV.len() - 10], PARQUET] {
        let error = read(Failing(bytes), None, &mut |_| {}).expect_err("the disk failed");
        assert!(matches!(error, ReadError::Io(_)), "{error}");
    }
}

fn any_format() -> impl Strategy<Value = Option<Format>> {
    prop::sample::select(vec![
        None,
        Some(Format::Squid),
        Some(Format::Common),
        Some(Format::Csv),
        Some(Format::Parquet),
        Some(Format::Json),
        Some(Format::OracleGeneral),
    ])
}

/// Generates a log of a random format with a few changed bytes. Some logs are also truncated.
fn damaged() -> impl Strategy<Value = Vec<u8>> {
    let log = prop::sample::select(vec![SQUID, COMBINED, CSV, PARQUET]);
    let changes = prop::collection::vec((any::<prop::sample::Index>(), any::<u8>()), 1..8);
    (log, changes, any::<prop::sample::Index>(), any::<bool>()).prop_map(
        |(log, changes, end, cut)| {
            let mut bytes = log.to_vec();
            for (at, byte) in changes {
                let at = at.index(bytes.len());
                bytes[at] = byte;
            }
            if cut {
                bytes.truncate(end.index(bytes.len()));
            }
            bytes
        },
    )
}

/// Checks that every line is a request or has a reason, and that the trace has as many requests as
/// the report says.
fn adds_up(bytes: &[u8], format: Option<Format>) {
    if let Ok((trace, report)) = read_bytes(bytes, format) {
        assert_eq!(
            report.lines,
            report.gets + report.reasons().map(|(_, count)| count).sum::<u64>()
        );
        assert_eq!(report.gets, trace.gets.len() as u64);
        assert!(trace.gets.is_sorted_by_key(|get| get.time));
        assert!(
            trace
                .gets
                .iter()
                .all(|get| get.client < trace.clients && trace.site(get.url) < trace.site_count)
        );
    }
}

proptest! {
    #[test]
    fn random_bytes_never_make_a_reader_panic(
        bytes in prop::collection::vec(any::<u8>(), 0..400),
        format in any_format(),
    ) {
        adds_up(&bytes, format);
    }

    #[test]
    fn random_lines_never_make_a_reader_panic(
        text in "([0-9.,:/\\[\\]\"+ -]|GET|http|time,url,bytes|\n){0,60}",
        format in any_format(),
    ) {
        adds_up(text.as_bytes(), format);
    }

    #[test]
    fn damaged_logs_never_make_a_reader_panic(bytes in damaged(), format in any_format()) {
        adds_up(&bytes, format);
    }
}

#[test]
fn a_log_below_lines_of_something_else_is_still_known() {
    let garbage: String = (0..200).map(|line| format!("ERROR {line}: restarted\n")).collect();
    let (_, report) = read_bytes(&[garbage.as_bytes(), SQUID].concat(), None).expect("found below");
    assert_eq!((report.format, report.gets), (Format::Squid, 8));
    let error = read_bytes(garbage.as_bytes(), None).expect_err("no log at all").to_string();
    assert!(error.contains("--format"), "{error}");
}
