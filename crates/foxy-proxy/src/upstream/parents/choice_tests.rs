//! Tests which parent proxy is chosen for a request.

use super::*;
use std::time::Duration;

fn parents(choice: ParentChoice, fallback: ParentFallback, no_proxy: &[&str]) -> Parents {
    let parents = ["http://a.test:1", "http://b.test:1", "http://c.test:1"];
    let settings = ParentSettings {
        parents: parents.map(|url| url.parse().expect("a parent")).to_vec(),
        choice,
        fallback,
        no_proxy: no_proxy.iter().map(|text| text.parse().expect("a host")).collect(),
        sibling: None,
    };
    Parents::new(settings, "foxy", 7).expect("it has parents")
}

fn aim(host: &str) -> Aim<'_> {
    let key = host.as_bytes();
    Aim { scheme: Scheme::Http, host, port: 80, key, is_cacheable: false, ways: None }
}

fn none_tried() -> Tried {
    Tried::default()
}

#[test]
fn the_first_parent_that_works_is_chosen() {
    let parents = parents(ParentChoice::Order, ParentFallback::Refuse, &[]);
    let now = Instant::ZERO;
    let mut tried = none_tried();
    for number in 0..3 {
        assert_eq!(parents.choose(aim("x.test"), tried, now), Chosen::Parent(number));
        parents.fails(number, ParentFault::Down, now);
        tried.add(number);
    }
    assert_eq!(parents.choose(aim("x.test"), tried, now), Chosen::Nothing);
    assert_eq!(parents.choose(aim("x.test"), none_tried(), now), Chosen::Nothing);
    assert_eq!(parents.down(now).len(), 3);
    parents.works(1);
    assert_eq!(parents.choose(aim("x.test"), none_tried(), now), Chosen::Parent(1));
    let later = now + Duration::from_secs(1);
    assert_eq!(parents.choose(aim("x.test"), none_tried(), later), Chosen::Parent(0), "a trial");
    assert_eq!(parents.choose(aim("x.test"), none_tried(), later), Chosen::Parent(1));
}

#[test]
fn a_silent_parent_is_the_last_choice() {
    let parents = parents(ParentChoice::Order, ParentFallback::Refuse, &[]);
    let now = Instant::ZERO;
    parents.fails(0, ParentFault::Silent, now);
    parents.fails(1, ParentFault::Down, now);
    assert_eq!(parents.choose(aim("x.test"), none_tried(), now), Chosen::Parent(2));
    parents.fails(2, ParentFault::Down, now);
    assert_eq!(parents.choose(aim("x.test"), none_tried(), now), Chosen::Parent(0));
}

#[test]
fn without_a_working_parent_only_a_setting_permits_a_direct_connection() {
    let parents = parents(ParentChoice::Order, ParentFallback::Direct, &[]);
    for number in 0..3 {
        parents.fails(number, ParentFault::Down, Instant::ZERO);
    }
    assert_eq!(parents.choose(aim("x.test"), none_tried(), Instant::ZERO), Chosen::Fallback);
}

#[test]
fn rendezvous_hashing_moves_only_the_keys_of_a_parent_that_fails() {
    let parents = parents(ParentChoice::Rendezvous, ParentFallback::Refuse, &[]);
    let now = Instant::ZERO;
    let hosts: Vec<String> = (0..300).map(|number| format!("h{number}.test")).collect();
    let all = || -> Vec<_> {
        hosts.iter().map(|host| parents.choose(aim(host), none_tried(), now)).collect()
    };
    let before = all();
    for number in 0..3 {
        let share = before.iter().filter(|chosen| **chosen == Chosen::Parent(number)).count();
        assert!((60..140).contains(&share), "parent {number} has {share} of 300");
    }
    parents.fails(1, ParentFault::Down, now);
    for (before, after) in before.iter().zip(all()) {
        assert_ne!(after, Chosen::Parent(1));
        assert!(*before == Chosen::Parent(1) || *before == after, "{before:?} {after:?}");
    }
}

#[test]
fn some_destinations_go_to_no_parent() {
    let parents =
        parents(ParentChoice::Order, ParentFallback::Refuse, &["inside.test", "10.0.0.0/8"]);
    for (host, expected) in [
        ("x.test", Chosen::Parent(0)),
        ("192.168.1.1", Chosen::Parent(0)),
        ("a.inside.test", Chosen::Direct),
        ("10.1.2.3", Chosen::Direct),
        ("localhost", Chosen::Direct),
        ("a.localhost.", Chosen::Direct),
        ("127.0.0.2", Chosen::Direct),
        ("[::1]", Chosen::Direct),
        ("[::ffff:127.0.0.1]", Chosen::Direct),
        ("0.0.0.0", Chosen::Direct),
    ] {
        assert_eq!(parents.choose(aim(host), none_tried(), Instant::ZERO), expected, "{host}");
    }
}

#[test]
fn the_ways_of_a_rule_replace_the_settings() {
    let now = Instant::ZERO;
    let named = |parents: &[&str]| parents.iter().map(|host| ((*host).to_owned(), 1)).collect();
    let all = Ways { all_parents: true, ..Ways::default() };
    let some = Ways { parents: named(&["b.test", "c.test"]), ..Ways::default() };
    let direct = Ways { direct: true, ..Ways::default() };
    let both = Ways { direct: true, ..some.clone() };
    let parents = parents(ParentChoice::Order, ParentFallback::Direct, &["inside.test"]);
    let choose =
        |ways, host| parents.choose(Aim { ways: Some(ways), ..aim(host) }, none_tried(), now);
    assert_eq!(choose(&all, "inside.test"), Chosen::Parent(0));
    assert_eq!(choose(&some, "inside.test"), Chosen::Parent(1));
    assert_eq!(choose(&direct, "x.test"), Chosen::Direct);
    assert_eq!(choose(&all, "localhost"), Chosen::Direct, "localhost is this machine");
    assert!((1..3).all(|number| parents.fails(number, ParentFault::Down, now)));
    assert_eq!(choose(&some, "x.test"), Chosen::Nothing);
    assert_eq!(choose(&both, "x.test"), Chosen::Fallback);
}

#[test]
fn a_parent_for_one_scheme_receives_no_other() {
    let only: Parent = "http://a.test:1".parse().expect("a parent");
    let settings =
        ParentSettings { parents: vec![only.only_for(Scheme::Https)], ..ParentSettings::default() };
    let parents = Parents::new(settings, "foxy", 7).expect("it has parents");
    let secure = Aim { scheme: Scheme::Https, ..aim("x.test") };
    assert_eq!(parents.choose(aim("x.test"), none_tried(), Instant::ZERO), Chosen::Direct);
    assert_eq!(parents.choose(secure, none_tried(), Instant::ZERO), Chosen::Parent(0));
}

#[test]
fn a_sibling_receives_what_a_cache_can_answer_until_it_fails_or_ends() {
    let parent = |url: &str| url.parse::<Parent>().expect("a parent");
    let no_proxy = vec!["b.test".parse().expect("a host")];
    let settings = ParentSettings {
        parents: vec![parent("http://a.test:1")],
        no_proxy,
        sibling: Some(parent("http://127.0.0.1:2")),
        ..ParentSettings::default()
    };
    let parents = Parents::new(settings, "foxy", 7).expect("it has parents");
    let cacheable = |host| Aim { is_cacheable: true, ..aim(host) };
    let now = Instant::ZERO;
    let choose = |aim, tried| parents.choose(aim, tried, now);
    for host in ["x.test", "b.test", "127.0.0.1"] {
        assert_eq!(choose(cacheable(host), none_tried()), Chosen::Parent(1), "{host}");
    }
    assert_eq!(choose(aim("x.test"), none_tried()), Chosen::Parent(0));
    assert_eq!(choose(aim("b.test"), none_tried()), Chosen::Direct);
    let mut tried = none_tried();
    tried.add(1);
    assert_eq!(choose(cacheable("x.test"), tried), Chosen::Parent(0));
    assert_eq!(choose(cacheable("b.test"), tried), Chosen::Direct);
    parents.end_sibling();
    assert_eq!(choose(cacheable("x.test"), none_tried()), Chosen::Parent(0));
}
