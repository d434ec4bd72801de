//! Tests the clauses of the RFCs on caches, one by one. Each test runs a history, a sequence of
//! exchanges, in virtual time against a miniature cache.

use crate::history::Saw::{Confirmed, Fresh, Nothing, Origin, Stale};
use crate::history::{History, Saw};
use foxy_rules::{Permit, Role};

/// Seconds since the start, the request, the origin's response, and the expected result of an
/// exchange.
type Step<'a> = (u64, &'a str, &'a str, Saw);

fn play_as(role: Role, clause: &str, steps: &[Step<'_>]) {
    let mut cache = History::new(role);
    for (number, (at, request, says, expected)) in steps.iter().enumerate() {
        assert_eq!(
            cache.ask(*at, request, says),
            *expected,
            "{clause}, step {number}: {request} at {at}"
        );
    }
}

fn play(clause: &str, steps: &[Step<'_>]) {
    play_as(Role::Proxy, clause, steps);
}

const GET: &str = "GET http://a.test/x";

#[test]
fn freshness_ends_with_the_lifetime_and_validation_begins_it_anew() {
    play(
        "RFC 9111 §4.2, §4.3.4",
        &[
            (0, GET, "200\nCache-Control: max-age=60\nETag: \"a\"", Origin),
            (59, GET, "", Fresh(0)),
            (60, GET, "304\nETag: \"a\"\nCache-Control: max-age=10", Confirmed(0)),
            (69, GET, "", Fresh(0)),
            (70, GET, "200\nCache-Control: max-age=60", Origin),
            (129, GET, "", Fresh(4)),
        ],
    );
}

#[test]
fn lifetimes_in_their_order() {
    let expires = "Expires: Sun, 06 Nov 1994 08:50:07 GMT";
    let cases = [
        ("§5.2.2.10 s-maxage", "200\nCache-Control: max-age=5, s-maxage=20".to_owned(), 20),
        ("§5.2.2.1 max-age", format!("200\nCache-Control: max-age=5\n{expires}"), 5),
        ("§5.3 Expires", format!("200\nDate: Sun, 06 Nov 1994 08:49:37 GMT\n{expires}"), 30),
        ("§5.3 Expires without Date", format!("200\n{expires}"), 30),
        ("§5.3 asctime", "200\nExpires: Sun Nov  6 08:49:47 1994".into(), 10),
        ("§5.3 RFC 850", "200\nExpires: Sunday, 06-Nov-94 08:49:47 GMT".into(), 10),
        ("§4.2.2 heuristic", "200\nLast-Modified: Sun, 06 Nov 1994 08:47:57 GMT".into(), 10),
        ("§4.2.3 Age", "200\nCache-Control: max-age=50\nAge: 30".into(), 20),
        (
            "§5.1 the first of several ages",
            "200\nCache-Control: max-age=50\nAge: 30, 0\nAge: 0".into(),
            20,
        ),
        (
            "§4.2.3 Date",
            "200\nCache-Control: max-age=50\nDate: Sun, 06 Nov 1994 08:49:07 GMT".into(),
            20,
        ),
    ];
    for (clause, says, lifetime) in cases {
        let last = lifetime - 1;
        play(clause, &[(0, GET, &says, Origin), (last, GET, "200", Fresh(0))]);
        play(clause, &[(0, GET, &says, Origin), (lifetime, GET, "200", Origin)]);
    }
}

#[test]
fn what_is_not_stored_is_asked_for_again() {
    let fresh = "200\nCache-Control: max-age=60";
    let cases = [
        ("§5.2.2.5 no-store", GET, "200\nCache-Control: max-age=60, no-store"),
        ("§5.2.2.7 private", GET, "200\nCache-Control: max-age=60, private"),
        (
            "§5.2.2.7 private with fields",
            GET,
            "200\nCache-Control: max-age=60, private=\"set-cookie\"",
        ),
        ("§4.1 Vary: *", GET, "200\nCache-Control: max-age=60\nVary: accept, *"),
        ("§5.2.2.3 must-understand", GET, "299\nCache-Control: max-age=60, must-understand"),
        ("§3 nothing said", GET, "200"),
        ("§3 a 302 with nothing said", GET, "302\nLast-Modified: Sun, 06 Nov 1988 08:49:37 GMT"),
        (
            "§3 a partial response",
            GET,
            "206\nCache-Control: max-age=60\nContent-Range: bytes 0-1/9",
        ),
        ("§5.2.1.5 no-store in the request", "GET http://a.test/x\nCache-Control: no-store", fresh),
        ("§3.5 Authorization", "GET http://a.test/x\nAuthorization: me", fresh),
        ("§4.2.1 a lifetime that is none", GET, "200\nCache-Control: max-age=ten"),
        ("§4.2.1 lifetimes that differ", GET, "200\nCache-Control: max-age=60, max-age=0"),
        ("§5.3 several Expires", GET, "200\nExpires: Sun, 06 Nov 1999 08:49:37 GMT\nExpires: 0"),
    ];
    for (clause, request, says) in cases {
        play(clause, &[(0, request, says, Origin), (1, GET, says, Origin)]);
    }
}

#[test]
fn what_the_standard_lets_a_shared_cache_store() {
    let authorized = "GET http://a.test/x\nAuthorization: me";
    let cases = [
        ("§3.5 public", authorized, "200\nCache-Control: max-age=60, public"),
        ("§3.5 must-revalidate", authorized, "200\nCache-Control: max-age=60, must-revalidate"),
        ("§3.5 s-maxage", authorized, "200\nCache-Control: s-maxage=60"),
        ("§3 any final status", GET, "599\nCache-Control: max-age=60"),
        (
            "§5.2.2.3 over no-store",
            GET,
            "404\nCache-Control: max-age=60, must-understand, no-store",
        ),
        ("§5.2.3 an unknown directive", GET, "200\nCache-Control: max-age=60, community=\"a,b\""),
        ("§5.2 quoted and in capitals", GET, "200\nCache-Control: MAX-AGE=\"60\""),
        ("§5.4 Pragma in a response", GET, "200\nPragma: no-cache\nCache-Control: max-age=60"),
    ];
    for (clause, request, says) in cases {
        play(clause, &[(0, request, says, Origin), (59, GET, says, Fresh(0))]);
    }
}

#[test]
fn what_requests_ask_of_a_fresh_response() {
    let says = "200\nCache-Control: max-age=60\nETag: \"a\"";
    let cases = [
        ("§5.2.1.4 no-cache", "Cache-Control: no-cache", Confirmed(0)),
        ("§5.4 Pragma", "Pragma: no-cache", Confirmed(0)),
        (
            "§5.4 Pragma beside Cache-Control",
            "Pragma: no-cache\nCache-Control: max-age=99",
            Fresh(0),
        ),
        ("§5.2.1.1 max-age", "Cache-Control: max-age=29", Confirmed(0)),
        ("§5.2.1.1 max-age", "Cache-Control: max-age=30", Fresh(0)),
        ("§5.2.1.3 min-fresh", "Cache-Control: min-fresh=31", Confirmed(0)),
        ("§5.2.1.3 min-fresh", "Cache-Control: min-fresh=30", Fresh(0)),
        ("§5.2.1.5 no-store", "Cache-Control: no-store", Fresh(0)),
        ("§5.2.1.7 only-if-cached", "Cache-Control: only-if-cached", Fresh(0)),
        ("§5.2.1.7 only-if-cached", "Cache-Control: only-if-cached, no-cache", Nothing),
    ];
    for (clause, lines, expected) in cases {
        let request = format!("{GET}\n{lines}");
        play(clause, &[(0, GET, says, Origin), (30, &request, "304\nETag: \"a\"", expected)]);
    }
}

#[test]
fn stale_answers_and_what_allows_them() {
    let say = |more: &str| format!("200\nCache-Control: max-age=60{more}\nETag: \"a\"");
    let stale = format!("{GET}\nCache-Control: max-stale=10");
    let any = format!("{GET}\nCache-Control: max-stale");
    let cases = [
        ("§5.2.1.2 max-stale", &stale, "", 70, "200", Stale(0, Permit::MaxStale)),
        ("§5.2.1.2 max-stale", &stale, "", 71, "200", Origin),
        ("§5.2.1.2 without a value", &any, "", 9999, "200", Stale(0, Permit::MaxStale)),
        ("§5.2.2.2 must-revalidate", &any, ", must-revalidate", 61, "200", Origin),
        ("§5.2.2.8 proxy-revalidate", &any, ", proxy-revalidate", 61, "200", Origin),
        ("§5.2.2.10 s-maxage", &any, ", s-maxage=60", 61, "200", Origin),
        ("§5.2.2.4 no-cache", &any, ", no-cache", 1, "200", Origin),
        (
            "RFC 5861 §4 an error",
            &GET.to_owned(),
            ", stale-if-error=10",
            70,
            "503",
            Stale(0, Permit::IfError),
        ),
        ("RFC 5861 §4 past its time", &GET.to_owned(), ", stale-if-error=10", 71, "503", Origin),
        ("RFC 5861 §4 no error", &GET.to_owned(), ", stale-if-error=10", 61, "404", Origin),
        ("RFC 5861 §4 nobody said so", &GET.to_owned(), "", 61, "503", Origin),
        ("§4.2.4 disconnected", &GET.to_owned(), "", 61, "", Stale(0, Permit::Disconnected)),
        ("§4.2.4 for a week", &GET.to_owned(), "", 60 + 604_801, "", Nothing),
        ("§4.2.4 forbidden", &GET.to_owned(), ", must-revalidate", 61, "", Nothing),
    ];
    for (clause, request, more, at, then, expected) in cases {
        play(clause, &[(0, GET, &say(more), Origin), (at, request, then, expected)]);
    }
}

#[test]
fn a_response_is_refreshed_while_it_is_stale() {
    let says = "200\nCache-Control: max-age=60, stale-while-revalidate=30\nETag: \"a\"";
    play(
        "RFC 5861 §3",
        &[
            (0, GET, says, Origin),
            (90, GET, "304\nETag: \"a\"", Stale(0, Permit::WhileRevalidate)),
            (149, GET, "", Fresh(0)),
            (
                150,
                GET,
                "200\nCache-Control: max-age=60\nETag: \"b\"",
                Stale(0, Permit::WhileRevalidate),
            ),
            (209, GET, "", Fresh(3)),
            (210, GET, "200", Origin),
        ],
    );
    play("RFC 5861 §3", &[(0, GET, says, Origin), (91, GET, "200", Origin)]);
}

#[test]
fn variants_answer_their_own_requests_only() {
    let (german, french) =
        ("GET http://a.test/x\nAccept-Language: de", "GET http://a.test/x\nAccept-Language: fr");
    let says = "200\nCache-Control: max-age=60\nVary: , accept-language ,";
    play(
        "RFC 9111 §4.1",
        &[
            (0, german, says, Origin),
            (1, french, says, Origin),
            (2, german, says, Fresh(0)),
            (3, french, says, Fresh(1)),
            (4, GET, says, Origin),
            (5, "GET http://a.test/x\nAccept-Language:  DE ", says, Fresh(0)),
            (6, "GET http://a.test/x\nAccept-Language: de, fr", says, Origin),
        ],
    );
}

#[test]
fn a_304_about_something_else_confirms_nothing() {
    let says = "200\nCache-Control: max-age=1\nETag: \"a\"";
    for other in ["304\nETag: \"b\"", "304\nETag: W/\"a\"\nETag: \"c\""] {
        play("RFC 9111 §4.3.4", &[(0, GET, says, Origin), (5, GET, other, Origin)]);
    }
}

#[test]
fn a_head_renews_what_it_describes_and_lets_go_what_it_does_not() {
    let says = "200\nCache-Control: max-age=10\nETag: \"a\"";
    let head = "HEAD http://a.test/x";
    let same = "200\nCache-Control: max-age=20\nETag: \"a\"\nContent-Length: 1";
    play(
        "RFC 9111 §4.3.5",
        &[(0, GET, says, Origin), (10, head, same, Origin), (29, GET, "", Fresh(0))],
    );
    for other in
        ["200\nETag: \"b\"", "200\nETag: \"a\"\nContent-Length: 2", "200\nContent-Length: 2"]
    {
        play(
            "RFC 9111 §4.3.5",
            &[(0, GET, says, Origin), (10, head, other, Origin), (11, GET, "", Nothing)],
        );
    }
    play(
        "RFC 9111 §4.3.5",
        &[(0, GET, says, Origin), (10, head, "404", Origin), (11, GET, "304", Confirmed(0))],
    );
}

#[test]
fn a_head_without_a_validator_changes_nothing_of_what_is_stored() {
    let (head, newer) =
        ("HEAD http://a.test/x", "200\nCache-Control: max-age=20\nContent-Length: 1");
    let (says, tagged) =
        ("200\nCache-Control: max-age=10", "200\nCache-Control: max-age=10\nETag: \"a\"");
    play(
        "RFC 9111 §4.3.5",
        &[(0, GET, says, Origin), (10, head, newer, Origin), (11, GET, says, Origin)],
    );
    play(
        "RFC 9111 §4.3.5",
        &[(0, GET, tagged, Origin), (10, head, newer, Origin), (11, GET, "304", Confirmed(0))],
    );
}

#[test]
fn a_stored_part_answers_ranges_within_it() {
    let (third, fourth) =
        ("GET http://a.test/x\nRange: bytes=2-2", "GET http://a.test/x\nRange: bytes=3-3");
    let says = "206\nCache-Control: max-age=10\nContent-Range: bytes 2-2/9";
    let part = (0, third, says, Origin);
    let longer = "206\nCache-Control: max-age=10\nContent-Range: bytes 2-3/9";
    let varies = "206\nCache-Control: max-age=10\nContent-Range: bytes 2-2/9\nVary: accept";
    play("RFC 9111 §3.3", &[part, (9, third, "", Fresh(0)), (10, third, says, Origin)]);
    play("RFC 9111 §3.3", &[part, (1, fourth, "416", Origin), (1, GET, "200", Origin)]);
    play(
        "RFC 9111 §3.3",
        &[part, (1, "POST http://a.test/x", "200", Origin), (2, third, says, Origin)],
    );
    for unfit in [longer, varies] {
        play("RFC 9111 §3.3", &[(0, third, unfit, Origin), (1, third, unfit, Origin)]);
    }
}

#[test]
fn unsafe_requests_invalidate() {
    let says = "200\nCache-Control: max-age=60";
    let (other, foreign) = ("GET http://a.test/y", "GET http://b.test/y");
    let cases = [
        ("§4.4 the target", GET, "POST http://a.test/x", "204", Origin),
        ("§4.4 an unknown method", GET, "FROB http://a.test/x", "200", Origin),
        ("§4.4 a redirection", GET, "PUT http://a.test/x", "303", Origin),
        ("§4.4 an error", GET, "POST http://a.test/x", "500", Fresh(0)),
        ("RFC 9110 §9.2.1 a safe method", GET, "OPTIONS http://a.test/x", "200", Fresh(0)),
        ("§4.4 Location", other, "POST http://a.test/x", "201\nLocation: /y", Origin),
        (
            "§4.4 Content-Location",
            other,
            "POST http://a.test/x",
            "200\nContent-Location: y",
            Origin,
        ),
        (
            "§4.4 another origin",
            foreign,
            "POST http://a.test/x",
            "201\nLocation: http://b.test/y",
            Fresh(0),
        ),
    ];
    for (clause, wanted, changing, answer, expected) in cases {
        play(
            clause,
            &[
                (0, wanted, says, Origin),
                (1, changing, answer, Origin),
                (2, wanted, says, expected),
            ],
        );
    }
}

#[test]
fn the_targeted_field_governs_gateways() {
    let cases = [
        ("RFC 9213 §2.2", "Cache-Control: no-store\nCDN-Cache-Control: max-age=60", 59, Fresh(0)),
        ("RFC 9213 §2.2", "Cache-Control: max-age=60\nCDN-Cache-Control: max-age=5", 5, Origin),
        ("RFC 9213 §2.2 Expires", "Expires: 0\nCDN-Cache-Control: max-age=60", 59, Fresh(0)),
        ("RFC 9213 §2.2 empty", "Cache-Control: max-age=60\nCDN-Cache-Control: ", 59, Fresh(0)),
        (
            "RFC 9213 §2.2 broken",
            "Cache-Control: max-age=60\nCDN-Cache-Control: no-store, &",
            59,
            Fresh(0),
        ),
        (
            "RFC 9213 §2.1 private",
            "Cache-Control: max-age=60\nCDN-Cache-Control: private",
            1,
            Origin,
        ),
        (
            "RFC 9213 §2.1 a type",
            "Cache-Control: max-age=60\nCDN-Cache-Control: max-age=\"60\"",
            1,
            Origin,
        ),
    ];
    for (clause, lines, at, expected) in cases {
        let says = format!("200\n{lines}");
        play_as(Role::Gateway, clause, &[(0, GET, &says, Origin), (at, GET, &says, expected)]);
    }
    let says = "200\nCache-Control: max-age=5\nCDN-Cache-Control: max-age=60";
    play("RFC 9213 §3: a proxy of clients", &[(0, GET, says, Origin), (5, GET, says, Origin)]);
}

#[test]
fn hosts_ports_and_paths_are_kept_apart() {
    let says = "200\nCache-Control: max-age=60";
    play(
        "RFC 9111 §2",
        &[
            (0, "GET http://a.test/x", says, Origin),
            (1, "GET http://b.test/x", says, Origin),
            (1, "GET http://a.test:81/x", says, Origin),
            (1, "GET http://a.test/X", says, Origin),
            (1, "GET http://a.test/x?", says, Origin),
            (1, "GET http://A.test:80/x", says, Fresh(0)),
        ],
    );
}
