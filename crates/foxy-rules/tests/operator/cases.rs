//! A table of conditions and requests. Each request says whether it meets the conditions.

use crate::{Asked, conditions, rule};
use foxy_rules::operator::{Access, Effects, OperatorRule, OperatorRules};

/// A line without a mark has conditions. Below it, a line with `+` has a request that meets the
/// conditions, a line with `-` a request that does not. `#` starts a heading.
const CASES: &str = "
# hosts
host=a.test
+ GET http://a.test/
+ GET http://A.TEST/
+ GET http://a.test./
+ GET https://a.test:8443/x
+ GET http://www.a.test/
+ GET http://b.c.a.test/
- GET http://ba.test/
- GET http://a.test.evil/
- GET http://a.tes/
- GET http://b.test/
host=*.a.test
+ GET http://www.a.test/
+ GET http://x.y.a.test/
- GET http://a.test/
- GET http://xa.test/
host=*
+ GET http://anything/
+ GET http://192.0.2.1/
host=a.test,b.test
+ GET http://a.test/
+ GET http://b.test/
- GET http://c.test/
host=192.0.2.0/24
+ GET http://192.0.2.0/
+ GET http://192.0.2.255:81/
- GET http://192.0.3.0/
- GET http://a.192.0.2.0/
- GET http://a.test/
host=192.0.2.7
+ GET http://192.0.2.7/
- GET http://192.0.2.8/
host=2001:db8::/32
+ GET http://[2001:db8::1]/
+ GET http://[2001:DB8:0::1]:81/
- GET http://[2001:db9::1]/
- GET http://2001.test/
host=192.0.2.0/24,a.test
+ GET http://192.0.2.1/
+ GET http://a.test/
- GET http://192.0.1.1/
host=a_b-c.test
+ GET http://a_b-c.test/
- GET http://a-b-c.test/
# schemes and ports
scheme=https
+ GET https://a.test/
+ CONNECT https://a.test:443
- GET http://a.test/
scheme=http,https
+ GET http://a.test/
+ GET https://a.test/
port=80
+ GET http://a.test/
+ GET https://a.test:80/
- GET https://a.test/
- GET http://a.test:81/
port=443,8000-8999
+ GET https://a.test/
+ GET http://a.test:8000/
+ GET http://a.test:8999/
- GET http://a.test:7999/
- GET http://a.test:9000/
# methods
method=GET
+ GET http://a.test/
- HEAD http://a.test/
- POST http://a.test/
method=PUT,DELETE
+ PUT http://a.test/
+ DELETE http://a.test/
- GET http://a.test/
method=CONNECT
+ CONNECT https://a.test:443
- GET https://a.test/
method=PROPFIND
+ PROPFIND http://a.test/
- PROPPATCH http://a.test/
# paths
path=/x
+ GET http://a.test/x
+ GET http://a.test/x?query
+ GET http://a.test//x
+ GET http://a.test/./x
+ GET http://a.test/y/../x
+ GET http://a.test/%78
- GET http://a.test/x/
- GET http://a.test/X
- GET http://a.test/xx
- GET http://a.test/
- GET http://a.test/y/x
path=/x/*
+ GET http://a.test/x/
+ GET http://a.test/x/y
+ GET http://a.test/x/y/z
+ GET http://a.test/x/%2e%2e/x/y
+ GET http://a.test/%78%2fy
- GET http://a.test/x
- GET http://a.test/xy
- GET http://a.test/x/../y
- GET http://a.test/x/%2e%2e/y
path=*.css
+ GET http://a.test/a.css
+ GET http://a.test/b/a.css?v=2
- GET http://a.test/a.css.map
- GET http://a.test/a?b.css
path=*.j[as]
+ GET http://a.test/a.js
+ GET http://a.test/a.ja
- GET http://a.test/a.jss
path=/v?/*
+ GET http://a.test/v1/x
+ GET http://a.test/v2/x
- GET http://a.test/v10/x
path=(?i)/V/*.php
+ GET http://a.test/v/a.PHP
- GET http://a.test/v/a.html
path=/[a-c]/x
+ GET http://a.test/b/x
- GET http://a.test/d/x
path=/a%20b
+ GET http://a.test/a%20b
- GET http://a.test/a+b
path=/a,/b/*
+ GET http://a.test/a
+ GET http://a.test/b/c
- GET http://a.test/c
path=*
+ GET http://a.test/
+ GET http://a.test/any/thing
path=*/blobs/*
+ GET http://a.test/v2/x/y/blobs/sha256:00
- GET http://a.test/v2/x/y/manifests/1
# queries
query=token
+ GET http://a.test/?token=1
+ GET http://a.test/?a=1&token
+ GET http://a.test/?token=&b
- GET http://a.test/?tokens=1
- GET http://a.test/?a=token
- GET http://a.test/token
query=v=1*
+ GET http://a.test/?v=1
+ GET http://a.test/?v=12
+ GET http://a.test/?v=2&v=1
- GET http://a.test/?v=2
- GET http://a.test/?v
query=a,b
+ GET http://a.test/?a
+ GET http://a.test/?b
- GET http://a.test/?c
# fields
header=x-a
+ GET http://a.test/ X-A:1
+ GET http://a.test/ x-a:
- GET http://a.test/ X-B:1
- GET http://a.test/
header=user-agent:curl/*
+ GET http://a.test/ User-Agent:curl/8.5
+ GET http://a.test/ User-Agent:wget User-Agent:curl/8.5
- GET http://a.test/ User-Agent:wget/1
- GET http://a.test/ Server:curl/8.5
header=user-agent:(?i)curl/*
+ GET http://a.test/ User-Agent:CURL/8.5
- GET http://a.test/ User-Agent:wget/1
header=accept:text/html
+ GET http://a.test/ Accept:text/html
- GET http://a.test/ Accept:text/html,text/css
# clients
client=10.0.0.0/8
+ GET http://a.test/ @10.0.0.0
+ GET http://a.test/ @10.255.255.255
+ GET http://a.test/ @::ffff:10.1.2.3
- GET http://a.test/ @11.0.0.0
- GET http://a.test/ @::1
- GET http://a.test/
client=2001:db8::/32,127.0.0.1/32
+ GET http://a.test/ @2001:db8:1::1
+ GET http://a.test/ @127.0.0.1
- GET http://a.test/ @127.0.0.2
- GET http://a.test/ @2001:db9::
client=0.0.0.0/0
+ GET http://a.test/ @203.0.113.9
- GET http://a.test/ @2001:db8::1
# users
user=alice
+ GET http://a.test/ ~alice
- GET http://a.test/ ~alicia
- GET http://a.test/ ~bob
- GET http://a.test/
user=*
+ GET http://a.test/ ~anyone
- GET http://a.test/
user=ci-*,root
+ GET http://a.test/ ~ci-7
+ GET http://a.test/ ~root
- GET http://a.test/ ~ci
# times
days=thu
+ GET http://a.test/
days=fri,sat
- GET http://a.test/
hours=11:00-13:00
+ GET http://a.test/
hours=12:01-11:59
- GET http://a.test/
# all conditions together
host=a.test path=/x/* method=GET client=10.0.0.0/8 query=q header=x-a
+ GET http://a.test/x/y?q @10.0.0.1 X-A:1
- POST http://a.test/x/y?q @10.0.0.1 X-A:1
- GET http://b.test/x/y?q @10.0.0.1 X-A:1
- GET http://a.test/y?q @10.0.0.1 X-A:1
- GET http://a.test/x/y @10.0.0.1 X-A:1
- GET http://a.test/x/y?q @11.0.0.1 X-A:1
- GET http://a.test/x/y?q @10.0.0.1 X-B:1
";

#[test]
fn requests_meet_exactly_the_conditions_of_the_table() {
    let (mut rules, mut when, mut count) = (OperatorRules::default(), "", 0);
    for line in CASES.lines().filter(|line| !line.is_empty() && !line.starts_with('#')) {
        let Some((mark @ ("+" | "-"), request)) = line.split_once(' ') else {
            when = line;
            let bypass = Effects { bypass: Some(true), ..Effects::default() };
            rules = OperatorRules::new(vec![rule("a", conditions(line), bypass)]).expect(line);
            continue;
        };
        count += 1;
        let asked = Asked::new(request);
        let is_met = rules.decide(&asked.facts()).bypasses();
        assert_eq!(is_met, mark == "+", "{when}\n{line}");
        let tried = rules.explain(&asked.facts(), None);
        assert_eq!(tried[0].result.is_ok(), is_met, "the explanation differs: {when}\n{line}");
    }
    assert!(count >= 150, "{count} cases");
}

#[test]
fn rules_that_deny_match_any_reading_and_rules_that_allow_need_all() {
    let deny = || Access::Deny { message: None };
    let decided = |when: &str, unless: &str, access: Access, request: &str| {
        let then = Effects { access: Some(access), ..Effects::default() };
        let unless = if unless.is_empty() { Vec::new() } else { vec![conditions(unless)] };
        let rules = vec![OperatorRule { unless, ..rule("a", conditions(when), then) }];
        let rules = OperatorRules::new(rules).expect("sound");
        rules.decide(&Asked::new(request).facts()).access().is_some()
    };
    let (hidden, open) = ("GET http://a.test/x/.git/../y", "GET http://a.test/.git/../x/y");
    for path in ["path=*/.git/*", "path=/x/.git/*", "path=/x/y"] {
        assert!(decided(path, "", deny(), hidden), "{path}");
        assert!(!decided(path, "", Access::Allow, hidden), "{path}");
        assert!(decided("", path, deny(), hidden), "{path} is no sure exception");
    }
    assert!(decided("", "path=/x/*", deny(), open), "the exception is not sure");
    for path in ["/\\x/y", "/%5Cx/y", "/a/..;/x/y", "/a/..;b/x/y", "/x;a/y", "/a\\..\\x/y"] {
        let request = format!("GET http://a.test{path}");
        assert!(decided("path=/x/*", "", deny(), &request), "{path}");
        assert!(!decided("path=/x/*", "", Access::Allow, &request), "{path}");
        assert!(decided("", "path=/x/*", deny(), &request), "{path} is no sure exception");
    }
    assert!(decided("path=/x/*", "", Access::Allow, "GET http://a.test//x/%79"));
    let split = "GET http://a.test/?a;debug=1";
    assert!(decided("query=debug", "", deny(), split));
    assert!(!decided("query=debug", "", Access::Allow, split));
    let get = "get http://a.test/";
    assert!(decided("method=GET", "", deny(), get) && decided("", "method=GET", deny(), get));
    assert!(!decided("method=GET", "", Access::Allow, get));
    assert!(!decided("", "method=GET", Access::Allow, get));
}

#[test]
fn a_field_that_replaces_the_method_avoids_no_rule() {
    for name in ["X-HTTP-Method-Override", "x_http_method", "X-Method-Override"] {
        let post = format!("POST http://a.test/ {name}:delete");
        let access = |access| Effects { access: Some(access), ..Effects::default() };
        let is_decided = |when: &str, then: Access| {
            let rules = OperatorRules::new(vec![rule("a", conditions(when), access(then))]);
            rules.expect("sound").decide(&Asked::new(&post).facts()).access().is_some()
        };
        assert!(is_decided("method=DELETE", Access::Deny { message: None }), "{post}");
        assert!(is_decided("method=POST", Access::Deny { message: None }), "{post}");
        assert!(!is_decided("method=POST", Access::Allow), "{post}");
        assert!(is_decided("method=POST,DELETE", Access::Allow), "{post}");
    }
}

#[test]
fn a_login_is_needed_unless_a_rule_surely_says_otherwise() {
    let login = |login| Effects { login: Some(login), ..Effects::default() };
    let rules = OperatorRules::new(vec![
        rule("admin", conditions("path=/admin/*"), login(true)),
        rule("guests", conditions("client=10.0.0.0/8 path=/*"), login(false)),
        rule("pub", conditions("path=/pub/*"), login(false)),
    ]);
    let rules = rules.expect("sound");
    let needs = |request: &str| rules.needs_login(&Asked::new(request).facts());
    assert!(!needs("GET http://a.test/x @10.1.1.1") && needs("GET http://a.test/x @11.1.1.1"));
    assert!(needs("GET http://a.test/admin/x @10.1.1.1"), "the first rule decides");
    assert!(needs("GET http://a.test/admin/../x @10.1.1.1"), "the path may be below /admin");
    assert!(!needs("GET http://a.test/pub/x") && needs("GET http://a.test/x/../pub/x"));
    assert!(OperatorRules::default().needs_login(&Asked::new("GET http://a.test/").facts()));
}
