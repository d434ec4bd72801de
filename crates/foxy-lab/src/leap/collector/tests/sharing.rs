//! Tests that all proxies share one exchange with the origin.

use super::*;
use crate::wire::REQUEST_ID;

/// Sends a request from eight proxies at the same time and then again from each proxy in turn. The
/// origin must see one request, and all answers must be equal.
fn shared(fields: &'static str, request: &str) {
    let origin = Origin::new(move |_, client| {
        std::thread::sleep(Duration::from_millis(20));
        give(client, &whole(200, fields, "the body"));
    });
    let collector = collector(8, |_| {});
    let text = request.replace("URL", &origin.url("/x"));
    let mut answers = all_at_once(&collector, |to| send(to, &text));
    answers.extend(collector.addresses().iter().map(|&to| send(to, &text)));
    for answer in answers {
        assert_eq!(
            (answer.status, answer.text().as_str()),
            (200, "the body"),
            "{request}: {}",
            answer.head
        );
    }
    let report = collector.report();
    assert_eq!(
        (origin.count(), report.requests(), report.fetches),
        (1, 16, 1),
        "{request} {fields}"
    );
    assert_eq!(report.collapse_factor(), Some(16.0));
}

#[test]
fn everything_is_asked_for_once_whatever_it_is() {
    let get = "GET URL HTTP/1.1\r\nHost: x\r\nConnection: close\r\n";
    shared("Cache-Control: max-age=60\r\n", &format!("{get}\r\n"));
    for uncachable in [
        "Cache-Control: no-store\r\n",
        "Cache-Control: private\r\n",
        "Set-Cookie: s=1\r\n",
        "Vary: *\r\n",
    ] {
        shared(uncachable, &format!("{get}\r\n"));
    }
    shared("", &format!("{get}Cookie: s=1\r\n\r\n"));
    shared("", &format!("{get}Authorization: Basic QTpC\r\n\r\n"));
    shared("", "POST URL HTTP/1.1\r\nHost: x\r\nConnection: close\r\nContent-Length: 3\r\n\r\na=1");
    shared("", "DELETE URL HTTP/1.0\r\nHost: x\r\n\r\n");
}

#[test]
fn requests_that_differ_in_body_or_cookies_are_asked_for_apart() {
    let origin = Origin::numbering("");
    let collector = collector(2, |_| {});
    let post = |to, body: &str| {
        let (url, length) = (origin.url("/form"), body.len());
        send(
            to,
            &format!(
                "POST {url} HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\
                 Content-Length: {length}\r\n\r\n{body}"
            ),
        )
    };
    let cookie = |to, value: &str| get(to, &origin.url("/form"), &format!("Cookie: s={value}\r\n"));
    let to = collector.addresses();
    let bodies = [
        post(to[0], "a"),
        post(to[1], "a"),
        post(to[0], "b"),
        cookie(to[0], "1"),
        cookie(to[1], "1"),
        cookie(to[0], "2"),
    ];
    let numbers = bodies.map(|got| got.text());
    assert_eq!(numbers, ["number 0", "number 0", "number 1", "number 2", "number 2", "number 3"]);
    let requests = origin.requests.lock().expect("not poisoned");
    assert!(
        requests[0].starts_with("POST /form HTTP/1.1\r\n") && requests[0].ends_with("\r\n\r\na"),
        "{requests:?}"
    );
}

#[test]
fn lesson_5_an_error_is_passed_once_to_each_and_the_origin_is_not_asked_again() {
    for status in [403, 404, 500, 501, 502, 503, 504] {
        let origin = Origin::new(move |_, client| give(client, &whole(status, "", "sorry")));
        let collector = collector(3, |_| {});
        let mut answers = all_at_once(&collector, |to| get(to, &origin.url("/x"), ""));
        answers.push(get(collector.addresses()[0], &origin.url("/x"), ""));
        for answer in answers {
            assert_eq!((answer.status, answer.text().as_str()), (status, "sorry"));
        }
        assert_eq!(origin.count(), 1, "{status}");
    }
}

#[test]
fn lesson_4_no_connection_to_an_origin_carries_two_requests() {
    let origin = Origin::new(|_, client| {
        give(client, &whole(200, "Connection: keep-alive\r\n", "x"));
        let mut more = [0];
        assert!(!client.read(&mut more).is_ok_and(|read| read > 0), "a second request came");
    });
    let collector = collector(1, |_| {});
    let to = collector.addresses()[0];
    let (a, b) = (origin.url("/a"), origin.url("/b"));
    let both = format!(
        "GET {a} HTTP/1.1\r\nHost: x\r\n\r\nGET {b} HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\
         \r\n"
    );
    let got = send(to, &both);
    assert!(
        got.text().starts_with("xHTTP/1.1 200") && got.text().ends_with("\r\n\r\nx"),
        "one of ours carries both"
    );
    let requests = origin.requests.lock().expect("not poisoned");
    assert_eq!(requests.len(), 2);
    assert!(
        requests.iter().all(|request| request.contains("\r\nConnection: close\r\n")),
        "{requests:?}"
    );
}

#[test]
fn lesson_3_the_four_cases_of_conditional_requests() {
    let origin = Origin::new(|request, client| {
        let fresh = "ETag: \"1\"\r\nCache-Control: max-age=900\r\n";
        if request.contains("If-None-Match: \"1\"") {
            give(client, format!("HTTP/1.1 304 Same\r\n{fresh}\r\n").as_bytes());
        } else {
            give(client, &whole(200, fresh, "version 1"));
        }
    });
    let collector = collector(4, |_| {});
    let to = collector.addresses();
    let ask = |proxy: usize, path: &str, lines: &str| {
        let got = get(to[proxy], &origin.url(path), lines);
        (got.status, got.text())
    };
    let (short, whole) = ((304, String::new()), (200, "version 1".to_owned()));
    let (same, other) = ("If-None-Match: \"1\"\r\n", "If-None-Match: \"0\"\r\n");
    // All proxies whose copy is current share one 304. A proxy without a copy causes a second
    // fetch, which returns the whole body.
    assert_eq!(
        (ask(0, "/a", same), ask(1, "/a", same), origin.count()),
        (short.clone(), short.clone(), 1)
    );
    assert_eq!(
        (ask(2, "/a", ""), ask(3, "/a", ""), origin.count()),
        (whole.clone(), whole.clone(), 2)
    );
    // The proxies' copies are outdated, so the origin sends a new body. This body also answers all
    // later requests.
    assert_eq!(
        (ask(0, "/b", other), ask(1, "/b", other), ask(2, "/b", ""), origin.count()),
        (whole.clone(), whole.clone(), whole.clone(), 3)
    );
    // The request names the stored answer in its condition. So the Collector (common parent proxy)
    // sends a 304 without asking the origin.
    assert_eq!((ask(3, "/b", same), origin.count()), (short, 3));
    // A request without a condition receives the whole body.
    assert_eq!((ask(0, "/c", ""), ask(1, "/c", ""), origin.count()), (whole.clone(), whole, 4));
}

#[test]
fn an_answer_that_depends_on_a_field_is_not_given_to_requests_that_have_another() {
    let origin = Origin::new(|request, client| {
        std::thread::sleep(Duration::from_millis(20));
        let body = if request.contains("Accept-Language: de") { "Hallo" } else { "Hello" };
        give(client, &whole(200, "Vary: Accept-Language\r\n", body));
    });
    let collector = collector(4, |_| {});
    let languages = |to: SocketAddr| {
        if collector.addresses().iter().position(|&at| at == to).is_some_and(|at| at % 2 == 0) {
            "de"
        } else {
            "en"
        }
    };
    for _ in 0..2 {
        let got = all_at_once(&collector, |to| {
            get(to, &origin.url("/"), &format!("Accept-Language: {}\r\n", languages(to)))
        });
        let bodies: Vec<String> = got.iter().map(Got::text).collect();
        assert_eq!(bodies, ["Hallo", "Hello", "Hallo", "Hello"]);
    }
    assert_eq!(origin.count(), 2);
}

#[test]
fn every_proxy_gets_an_answer_as_if_from_the_origin() {
    let origin = Origin::new(|request, client| {
        let number = request
            .split("X-Foxy-Request: ")
            .nth(1)
            .and_then(|rest| rest.split('\r').next())
            .unwrap_or("none");
        let head = format!(
            "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\nConnection: close\r\n\
             {REQUEST_ID}: {number}\r\n\r\n"
        );
        give(client, format!("{head}3\r\nabc\r\n2\r\nde\r\n0\r\n\r\n").as_bytes());
    });
    let collector = collector(2, |_| {});
    for (proxy, number) in [(0, "7"), (1, "8")] {
        let got = get(
            collector.addresses()[proxy],
            &origin.url("/"),
            &format!("{REQUEST_ID}: {number}\r\n"),
        );
        assert_eq!(got.field(REQUEST_ID).as_deref(), Some(number));
        assert_eq!(got.field("Transfer-Encoding").as_deref(), Some("chunked"));
        assert!(
            got.field("Via").is_some_and(|via| via.starts_with("1.1 foxy-collector-")),
            "{}",
            got.head
        );
    }
    let old = send(
        collector.addresses()[1],
        &format!("GET {} HTTP/1.0\r\nHost: x\r\n\r\n", origin.url("/")),
    );
    assert_eq!((old.text().as_str(), old.field("Transfer-Encoding")), ("abcde", None));
    assert_eq!(origin.count(), 1);
}

#[test]
fn the_log_is_squids_and_says_where_each_answer_came_from() {
    let origin = Origin::new(|_, client| {
        give(client, &whole(200, "Content-Type: text/html; charset=x\r\nETag: \"1\"\r\n", "hello"))
    });
    let mut lines = None;
    let collector = collector(2, |options| lines = Some(logged(options)));
    let to = collector.addresses();
    get(to[0], &origin.url("/a"), "");
    get(to[1], &origin.url("/a"), "");
    get(to[1], &origin.url("/a"), "If-None-Match: \"1\"\r\n");
    send(to[0], "GET ftp://a.test/ HTTP/1.1\r\nHost: a.test\r\n\r\n");
    drop(collector);
    let lines = lines.expect("a log");
    let lines = lines.lock().expect("not poisoned");
    let seen: Vec<String> = lines
        .iter()
        .map(|line| line.to_string().split(' ').skip(2).collect::<Vec<_>>().join(" "))
        .collect();
    let url = origin.url("/a");
    let sizes: Vec<u64> = lines.iter().map(|line| line.size).collect();
    assert_eq!(
        seen,
        [
            format!("p0 TCP_MISS/200 {} GET {url} - DIRECT/127.0.0.1 text/html", sizes[0]),
            format!("p1 TCP_MEM_HIT/200 {} GET {url} - NONE/- text/html", sizes[1]),
            format!("p1 TCP_IMS_HIT/304 {} GET {url} - NONE/- text/html", sizes[2]),
            format!("p0 TCP_DENIED/501 {} GET ftp://a.test/ - NONE/- text/plain", sizes[3]),
        ]
    );
}

#[test]
fn a_reverse_proxy_that_names_its_parent_means_the_origin_behind_it() {
    let origin = Origin::numbering("");
    let collector = collector(2, |options| options.origin = Some(origin.address));
    let named = |to: SocketAddr| {
        send(to, &format!("GET /x HTTP/1.1\r\nHost: {to}\r\nConnection: close\r\n\r\n"))
    };
    let got: Vec<String> = collector.addresses().iter().map(|&to| named(to).text()).collect();
    assert_eq!(got, ["number 0", "number 0"]);
    assert_eq!(get(collector.addresses()[0], &origin.url("/x"), "").text(), "number 0");
}

#[test]
fn a_reverse_proxy_that_knows_its_parent_as_localhost_means_the_origin_behind_it() {
    let origin = Origin::numbering("");
    let collector = collector(2, |options| options.origin = Some(origin.address));
    let named = |to: SocketAddr| {
        let port = to.port();
        send(to, &format!("GET /x HTTP/1.1\r\nHost: localhost:{port}\r\nConnection: close\r\n\r\n"))
    };
    let got: Vec<String> = collector.addresses().iter().map(|&to| named(to).text()).collect();
    assert_eq!(got, ["number 0", "number 0"]);
    assert_eq!(get(collector.addresses()[0], &origin.url("/x"), "").text(), "number 0");
}

#[test]
fn lesson_9_a_body_in_chunks_is_the_same_request_as_the_body_with_its_length() {
    let origin = Origin::numbering("");
    let collector = collector(2, |_| {});
    let head = format!("POST {} HTTP/1.1\r\nHost: x\r\nConnection: close\r\n", origin.url("/form"));
    let plain = send(collector.addresses()[0], &format!("{head}Content-Length: 5\r\n\r\nhello"));
    let chunks = "2\r\nhe\r\n3\r\nllo\r\n0\r\n\r\n";
    let chunked = send(
        collector.addresses()[1],
        &format!("{head}Transfer-Encoding: chunked\r\n\r\n{chunks}"),
    );
    assert_eq!(
        (plain.text(), chunked.text(), origin.count()),
        ("number 0".into(), "number 0".into(), 1)
    );
}
