//! Tests log lines of each format, and lines without a known format.

use super::meaning::outcome;
use super::*;
use crate::transaction::Text;

fn texts(transaction: &Transaction<'_>, names: &[Text]) -> Vec<String> {
    names.iter().map(|name| transaction.text(*name).to_owned()).collect()
}

#[test]
fn a_squid_line() {
    let line = b"1286536308.779    180 192.168.0.224 TCP_REFRESH_UNMODIFIED/200 411 GET \
        http://a.test/x alice HIER_DIRECT/10.0.0.1 text/html";
    let found = parse(line).expect("a line");
    assert_eq!((found.end, found.elapsed, found.status), (1_286_536_308_779, Some(180_000), 200));
    let names = [Text::Client, Text::Outcome, Text::User, Text::Server, Text::Type, Text::Url];
    let expected =
        ["192.168.0.224", "revalidated", "alice", "10.0.0.1", "text/html", "http://a.test/x"];
    assert_eq!(texts(&found, &names), expected);
    assert_eq!(found.host(), "a.test");
    for way in ["FIRSTUP_PARENT", "SIBLING_HIT", "CARP"] {
        let line = format!("1.5 1 10.0.0.7 TCP_MISS/200 411 GET http://a.test/ - {way}/10.0.0.2 -");
        let found = parse(line.as_bytes()).expect("a line");
        assert_eq!(found.text(Text::Parent), "10.0.0.2", "{line}");
    }
    for (end, expected) in [("HIER_NONE/- -", "refused"), ("HIER_DIRECT/10.0.0.1 -", "miss")] {
        let line = format!("1.5 1 10.0.0.7 TCP_MISS/504 411 GET http://a.test/ - {end}");
        let found = parse(line.as_bytes()).expect("a line");
        assert_eq!(found.text(Text::Outcome), expected, "{line}");
    }
}

#[test]
fn a_combined_line() {
    let line = concat!(
        r#"10.0.0.7 - frank [10/Oct/2000:13:55:36 -0700] "GET /a.gif?\"x HTTP/1.0" 499 2326 "#,
        r#""http://b/" "M [en] \"q\"""#
    );
    let line = line.as_bytes();
    let found = parse(line).expect("a line");
    assert_eq!((found.end, found.elapsed, found.status), (971_211_336_000, None, 499));
    assert_eq!((found.bytes, found.body), (2326, Some(2326)));
    let names = [Text::User, Text::Url, Text::Referer, Text::Agent, Text::Cut, Text::Version];
    let expected = ["frank", "/a.gif?\"x", "http://b/", "M [en] \"q\"", "client-left", "HTTP/1.0"];
    assert_eq!(texts(&found, &names), expected);
    let common = br#"10.0.0.7 - - [10/Oct/2000:13:55:36 -0700] "GET /a HTTP/1.0" 200 -"#;
    assert_eq!(parse(common).expect("a line").bytes, 0);
}

#[test]
fn a_json_line_of_this_and_of_an_older_version() {
    let old = concat!(
        r#"{"time":"2001-09-09T01:46:40.250Z","elapsed_us":5,"client":"10.0.0.7","user":null,"#,
        r#""result":"TCP_MISS","cut":null,"status":200,"bytes":300,"body_bytes":100,"#,
        r#""method":"GET","url":"http://a.test/\u00e9","cache_status":"foxy; fwd=uri-miss; "#,
        r#"fwd-status=200; detail=private","rules":"assets"}"#
    );
    let found = parse(old.as_bytes()).expect("a line");
    assert_eq!((found.end, found.elapsed), (1_000_000_000_250, Some(5)));
    assert_eq!(found.origin_status, Some(200));
    let names = [Text::Outcome, Text::Reason, Text::Url, Text::Rules];
    assert_eq!(texts(&found, &names), ["miss", "private", "http://a.test/é", "assets"]);
    let new = old.replace(
        r#""rules""#,
        r#""id":"7f","outcome":"bypass","origin_ttfb_us":9,"origin_connect_us":0,"rules""#,
    );
    let found = parse(new.as_bytes()).expect("a line");
    assert_eq!((found.origin_ttfb, found.origin_connect), (Some(9), Some(0)));
    assert_eq!(texts(&found, &[Text::Id, Text::Outcome]), ["7f", "bypass"]);
}

#[test]
fn a_result_code_of_squid_has_an_outcome() {
    for (code, status, method, expected) in [
        ("TCP_MEM_HIT", 200, "GET", ("memory-hit", "")),
        ("TCP_HIT", 200, "GET", ("disk-hit", "")),
        ("TCP_MISS", 200, "GET", ("miss", "")),
        ("TCP_MISS", 200, "POST", ("bypass", "")),
        ("TCP_MISS", 200, "CONNECT", ("tunnel", "")),
        ("TCP_TUNNEL", 200, "CONNECT", ("tunnel", "")),
        ("TCP_MISS_ABORTED", 0, "GET", ("cut", "client-left")),
        ("TCP_DENIED_REPLY", 403, "GET", ("refused", "")),
        ("TCP_REDIRECT", 301, "GET", ("local", "")),
        ("NONE", 502, "GET", ("origin-failed", "")),
        ("NONE_NONE", 400, "GET", ("refused", "")),
        ("NONE", 200, "PURGE", ("local", "")),
        ("NONE", 200, "CONNECT", ("tunnel", "")),
        ("UDP_HIT", 0, "ICP_QUERY", ("disk-hit", "")),
    ] {
        assert_eq!(outcome(code, status, method), expected, "{code}");
    }
}

#[test]
fn other_lines_have_no_format() {
    for line in
        ["", "{", "{}", "hello", "1.5 2 3", "10.0.0.7 - - [noon] \"GET / x\" 200 1", "\u{1}"]
    {
        assert_eq!(parse(line.as_bytes()), None, "{line}");
    }
    let latin = b"1.000 1 c TCP_HIT/200 5 GET http://a.test/\xe9 - - -";
    assert_eq!(parse(latin).expect("a line").path(), "/\u{fffd}");
}

#[test]
fn lines_are_split_in_whatever_pieces_they_arrive() {
    struct Pieces<'a>(&'a [u8], usize);
    impl Read for Pieces<'_> {
        fn read(&mut self, out: &mut [u8]) -> io::Result<usize> {
            let length = self.1.min(self.0.len()).min(out.len());
            out[..length].copy_from_slice(&self.0[..length]);
            self.0 = &self.0[length..];
            Ok(length)
        }
    }
    let long = "x".repeat(3 << 20);
    let text = format!("one\n\n{long}\nfour");
    for piece in [1, 7, 1 << 20, 8 << 20] {
        let text = if piece == 1 { "one\n\nthree\nfour" } else { &text };
        let mut lines = Vec::new();
        each(Pieces(text.as_bytes(), piece), |line| lines.push(line.to_vec())).expect("read");
        assert_eq!(lines.len(), 4, "{piece}");
        assert_eq!(
            (&lines[0][..], &lines[1][..], &lines[3][..]),
            (&b"one"[..], &b""[..], &b"four"[..])
        );
        assert!(piece == 1 || lines[2].len() <= MAX_LINE + READ_BYTES);
    }
}
