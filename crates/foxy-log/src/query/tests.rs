//! Tests queries in tables: which transactions each query selects, and the errors of invalid
//! queries.

use super::*;
use crate::transaction::Text as Name;

const NOW: u64 = 1_764_198_000_000; // 2025-11-26T23:00:00Z

fn transaction() -> Transaction<'static> {
    let mut transaction = Transaction {
        end: NOW - 60_000,
        elapsed: Some(1_500_000),
        status: 502,
        bytes: 10 << 20,
        origin_ttfb: Some(1_200_000),
        weight: 1,
        ..Transaction::default()
    };
    for (name, value) in [
        (Name::Url, "http://a.test:8080/x/y.html?q=1"),
        (Name::Client, "10.1.2.3"),
        (Name::Outcome, "origin-failed"),
        (Name::Method, "GET"),
        (Name::Rules, "assets,slow"),
    ] {
        transaction.texts[name as usize] = value.into();
    }
    transaction
}

#[test]
fn a_query_selects_what_it_says() {
    let transaction = transaction();
    for (text, expected) in [
        ("", true),
        ("status >= 500 and origin.ttfb > 1s and host = \"a.test\"", true),
        ("status>=500 and origin.ttfb>1s and host=a.test", true),
        ("status = 502", true),
        ("status == 502", true),
        ("status != 502", false),
        ("status < 502 or status > 502", false),
        ("elapsed > 1500ms", false),
        ("elapsed >= 1.5s", true),
        ("elapsed < 1m", true),
        ("bytes = 10M and bytes >= 10MiB and bytes > 9.9MB", true),
        ("not status = 502", false),
        ("not (status = 200) and method = GET", true),
        ("status = 200 and method = GET or client = 10.1.2.3", true),
        ("status = 200 and (method = GET or client = 10.1.2.3)", false),
        ("client = 10.0.0.0/8", true),
        ("client != 10.0.0.0/8", false),
        ("client = 192.0.2.0/24", false),
        ("url ~ \"\\.html\\?\"", true),
        ("path ~ ^/x/", true),
        ("path !~ ^/x/", false),
        ("rules ~ slow", true),
        ("user = \"\"", true),
        ("origin.connect = none", true),
        ("origin.connect != none", false),
        ("origin.connect < 1s", false),
        ("not origin.connect < 1s", true),
        ("hit = no AND error = yes", true),
        ("time > -2m", true),
        ("time > -30s", false),
        ("time >= 2025-11-26T22:59 and time < 2025-11-26T22:59:01Z", true),
        ("time > 2025-11-26 and time > 22:58", true),
        ("time > 2025-11-27", false),
        ("url = 'http://a.test:8080/x/y.html?q=1'", true),
        ("url = http://a.test:8080/x", false),
        ("host = “a.test”", true),
        ("host = A.Test", true),
        ("host != A.TEST", false),
        ("path = '/X/Y.html?q=1'", false),
    ] {
        let query = Query::read(text, NOW).unwrap_or_else(|error| panic!("{text}: {error:?}"));
        assert_eq!(query.matches(&transaction), expected, "{text}");
    }
}

#[test]
fn an_error_names_its_column_and_the_remedy() {
    for (text, column, message) in [
        ("statsu = 5", 1, "no field is named \"statsu\""),
        ("status = 5 and x", 16, "no field is named \"x\""),
        ("status", 7, "after status, write one of = != < <= > >="),
        ("status ~ 5", 8, "after status, write one of = != < <= > >="),
        ("host > a", 6, "after host, write one of = != ~ !~"),
        ("status =", 9, "a value is missing"),
        ("status = abc", 10, "\"abc\" is not a number; write a value such as 404"),
        ("elapsed > 5", 11, "\"5\" is not a duration; write a value such as 250ms"),
        (
            "client = 10.0.0.1/8",
            10,
            "\"10.0.0.1/8\" is not an address; write a value such as 10.0.0.0/8",
        ),
        (
            "time > noon",
            8,
            "\"noon\" is not a time; write a value such as 2026-11-26T23:00 or -15m",
        ),
        (
            "time > 2026-02-30",
            8,
            "\"2026-02-30\" is not a time; write a value such as 2026-11-26T23:00 or -15m",
        ),
        ("(status = 5", 1, "this parenthesis has no partner"),
        ("status = 5)", 11, "this parenthesis has no partner"),
        ("host = \"a", 8, "this quotation mark has no partner"),
        (
            "status = 5 status = 6",
            12,
            "write `and` or `or` before \"status\", or quotes around a longer value",
        ),
        ("status = 5 && hit = no", 12, "write `and` or `or`"),
        ("and", 1, "no field is named \"and\""),
        ("not", 4, "write a condition such as status >= 500"),
        ("url ~ \"(\"", 7, "the regular expression is invalid: unclosed group"),
    ] {
        let error = Query::read(text, NOW).expect_err(text);
        assert_eq!(
            (error.column, error.reason.to_string()),
            (column, message.to_owned()),
            "{text}"
        );
    }
    let deep = "(".repeat(100_000);
    assert_eq!(Query::read(&deep, NOW).expect_err("deep").reason, QueryFault::TooDeep);
}

#[test]
fn a_query_knows_the_times_that_it_needs() {
    for (text, from, to) in [
        ("status = 5", 0, u64::MAX),
        ("time > -1s and time < -0s and status = 5", NOW - 1000, NOW),
        ("time > -1s or status = 5", 0, u64::MAX),
        ("time > -1s or time > -5s", NOW - 5000, u64::MAX),
        ("not time > -1s", 0, u64::MAX),
    ] {
        assert_eq!(Query::read(text, NOW).expect(text).times(), from..=to, "{text}");
    }
}
